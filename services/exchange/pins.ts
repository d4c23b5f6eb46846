/** Which identity providers this space believes: `idp.json`, and nothing else (identity §2). */
import { isIPv4 } from "node:net";
import type { JWK } from "jose";
import Type, { type Static } from "typebox";
import { IDP } from "../../shared/limits.ts";
import { document, refused } from "../../shared/secrets/document.ts";

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

export type IdpPin = Static<typeof PinSchema>;

const pinsDocument = document(PinsSchema, ({ pins }) => {
  if (new Set(pins.map(({ issuer }) => issuer)).size < pins.length) return "/pins names one issuer twice";
  return pins.map(faultOf).find((fault) => fault !== undefined);
});

export const algorithmsOf = (pin: IdpPin): readonly IdpAlgorithm[] => pin.algorithms ?? ["EdDSA"];

/** The pins of `idp.json`; any fault refuses the start. A development provider counts with `--dev` alone. */
export function parsePins(location: string, file: Uint8Array, development: boolean): IdpPin[] {
  const { pins } = pinsDocument.decode(location, file);
  if (!development && pins.some((pin) => pin.development)) throw refused(location, "a development provider, no --dev");
  return pins;
}

function faultOf(pin: IdpPin, at: number): string | undefined {
  if ((pin.jwksUri === undefined) === (pin.keys === undefined)) return `/pins/${at} needs either jwksUri or keys`;
  const unsafe = (["url", "jwksUri"] as const).find((name) => pin[name] !== undefined && !isSafeUrl(pin[name]));
  return unsafe && `/pins/${at}/${unsafe} is neither https nor http on a loopback address`;
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
