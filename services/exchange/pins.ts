/** Which identity providers this space believes: `idp.json`, and nothing else (identity §2). */
import { isIPv4 } from "node:net";
import type { JWK } from "jose";
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { parseStrict } from "../../shared/canonical.ts";
import { AuthorityError, textOf } from "../../shared/errors.ts";
import { IDP, WIRE } from "../../shared/limits.ts";

const closed = { additionalProperties: false } as const;
const Text = Type.String({ minLength: 1, maxLength: 2_048 });
export const IDP_ALGORITHMS = ["EdDSA", "RS256", "ES256"] as const;
export type IdpAlgorithm = (typeof IDP_ALGORITHMS)[number];

const PinSchema = Type.Object(
  {
    /** Where people find the provider. */
    url: Text,
    issuer: Text,
    audience: Text,
    jwksUri: Type.Optional(Text),
    keys: Type.Optional(Type.Array(Type.Unsafe<JWK>({ type: "object" }), { minItems: 1, maxItems: 16 })),
    algorithms: Type.Optional(
      Type.Array(Type.Unsafe<IdpAlgorithm>({ type: "string", enum: [...IDP_ALGORITHMS] }), {
        minItems: 1,
        uniqueItems: true,
      }),
    ),
    development: Type.Optional(Type.Literal(true)),
  },
  closed,
);
const PinsSchema = Type.Object(
  { ver: Type.Literal(1), pins: Type.Array(PinSchema, { minItems: 1, maxItems: IDP.pins }) },
  closed,
);
const pinsCheck = Compile(PinsSchema);

export type IdpPin = Static<typeof PinSchema>;

export const algorithmsOf = (pin: IdpPin): readonly IdpAlgorithm[] => pin.algorithms ?? ["EdDSA"];

/** The pins of `idp.json`. Any fault refuses the start: `failed-precondition` naming the place, never the value. */
export function parsePins(file: Uint8Array, development: boolean): IdpPin[] {
  let value: unknown;
  try {
    value = parseStrict(file, { maxBytes: IDP.maxJwks, maxDepth: WIRE.maxDepth });
  } catch (error) {
    throw refused(textOf(error));
  }
  if (!pinsCheck.Check(value)) throw refused(pinsCheck.Errors(value)[0]?.instancePath ?? "");
  for (const [at, pin] of value.pins.entries()) checkPin(pin, `/pins/${at}`, development);
  if (new Set(value.pins.map(({ issuer }) => issuer)).size < value.pins.length) throw refused("two pins of one issuer");
  return value.pins;
}

function checkPin(pin: IdpPin, place: string, development: boolean): void {
  if ((pin.jwksUri === undefined) === (pin.keys === undefined)) throw refused(`${place}: either jwksUri or keys`);
  for (const name of ["url", "jwksUri"] as const) {
    const url = pin[name];
    if (url !== undefined && !isSafeUrl(url)) {
      throw refused(`${place}/${name}: neither https nor http on a loopback address`);
    }
  }
  if (pin.development && !development) throw refused(`${place}: a development provider outside --dev`);
}

/** `https`, or `http` on a loopback literal: `localhost` may resolve elsewhere. */
export function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== "" || password !== "") return false;
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}

/** A literal address of this machine, as it stands in a URL. */
export const isLoopback = (hostname: string): boolean =>
  hostname === "[::1]" || (isIPv4(hostname) && hostname.startsWith("127."));

const refused = (why: string): AuthorityError =>
  new AuthorityError("failed-precondition", `idp.json is refused: ${why}`);
