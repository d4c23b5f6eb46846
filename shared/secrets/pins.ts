/** Which identity providers a space believes, and under which keys: `idp.json` (identity §2). */
import Type, { type Static } from "typebox";
import { document } from "./document.ts";

const closed = { additionalProperties: false } as const;
const Url = Type.String({ minLength: 1, maxLength: 2_048 });
const Base64Url = Type.String({ minLength: 1, maxLength: 1_024, pattern: "^[A-Za-z0-9_-]+$" });

const Algorithm = Type.Union([Type.Literal("EdDSA"), Type.Literal("RS256"), Type.Literal("ES256")]);
export type PinAlgorithm = Static<typeof Algorithm>;
export const ALGORITHMS = ["EdDSA", "RS256", "ES256"] as const satisfies readonly PinAlgorithm[];
/** Of a pin that names none. */
export const DEFAULT_ALGORITHMS: readonly PinAlgorithm[] = ["EdDSA"];

/** What every public key may say of itself. A private member is refused. */
const about = {
  kid: Type.String({ minLength: 1, maxLength: 256 }),
  alg: Type.Optional(Algorithm),
  use: Type.Optional(Type.Literal("sig")),
  key_ops: Type.Optional(Type.Array(Type.Literal("verify"), { maxItems: 1 })),
};
const PublicJwk = Type.Union([
  Type.Object({ kty: Type.Literal("OKP"), crv: Type.Literal("Ed25519"), x: Base64Url, ...about }, closed),
  Type.Object({ kty: Type.Literal("EC"), crv: Type.Literal("P-256"), x: Base64Url, y: Base64Url, ...about }, closed),
  Type.Object({ kty: Type.Literal("RSA"), n: Base64Url, e: Base64Url, ...about }, closed),
]);

const IdpPin = Type.Object(
  {
    url: Url,
    /** Compared byte for byte. */
    issuer: Type.String({ minLength: 1, maxLength: 2_048 }),
    audience: Type.String({ minLength: 1, maxLength: 2_048 }),
    jwksUri: Type.Optional(Url),
    keys: Type.Optional(Type.Array(PublicJwk, { minItems: 1, maxItems: 16 })),
    /** Absent: EdDSA alone. */
    algorithms: Type.Optional(Type.Array(Algorithm, { minItems: 1, maxItems: 3, uniqueItems: true })),
    development: Type.Optional(Type.Literal(true)),
  },
  closed,
);
export type IdpPin = Static<typeof IdpPin>;

const Pins = Type.Object({ ver: Type.Literal(1), pins: Type.Array(IdpPin, { minItems: 1, maxItems: 8 }) }, closed);
export type PinFile = Static<typeof Pins>;

export const PinFile = document(Pins, ({ pins }) => {
  if (new Set(pins.map(({ issuer }) => issuer)).size !== pins.length) return "/pins name one issuer twice";
  for (const [i, { url, jwksUri, keys }] of pins.entries()) {
    if ((jwksUri === undefined) === (keys === undefined)) return `/pins/${i} needs either jwksUri or keys`;
    if (!isTrustworthyUrl(url)) return `/pins/${i}/url ${URL_RULE}`;
    if (jwksUri !== undefined && !isTrustworthyUrl(jwksUri)) return `/pins/${i}/jwksUri ${URL_RULE}`;
    if (new Set(keys?.map(({ kid }) => kid)).size !== (keys?.length ?? 0)) return `/pins/${i}/keys have one kid twice`;
  }
  return undefined;
});

const URL_RULE = "must be https, or http on a loopback address";

/** `localhost` is no loopback address: it may resolve elsewhere. */
export function isTrustworthyUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== "" || password !== "") return false;
  return protocol === "https:" || (protocol === "http:" && /^(127(\.\d{1,3}){3}|\[::1\])$/.test(hostname));
}
