/** The keys that sign bearers: `issuer.json` (identity §5). All times are Unix milliseconds. */
import { createPrivateKey, createPublicKey } from "node:crypto";
import Type, { type Static } from "typebox";
import { canonicalBytes, sha256Hex } from "../canonical.ts";
import { internal } from "../errors.ts";
import { ISSUER } from "../limits.ts";
import type { Ports } from "../ports.ts";
import type { Space } from "../tokens.ts";
import { document } from "./document.ts";

const closed = { additionalProperties: false } as const;
/** 32 bytes as unpadded base64url. */
const Key32 = Type.String({ pattern: "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$" });
const Ms = Type.Integer({ minimum: 0 });

const PrivateJwk = Type.Object({ kty: Type.Literal("OKP"), crv: Type.Literal("Ed25519"), x: Key32, d: Key32 }, closed);

const IssuerKey = Type.Object(
  {
    /** RFC 7638 thumbprint. */
    kid: Key32,
    privateJwk: PrivateJwk,
    publishedAt: Ms,
    /** Absent: published, never signed. */
    activeAt: Type.Optional(Ms),
    /** When another took its place. */
    stoppedAt: Type.Optional(Ms),
  },
  closed,
);
export type IssuerKey = Static<typeof IssuerKey>;

const IssuerFile = Type.Object(
  {
    ver: Type.Literal(1),
    /** Raised by each step of a rotation. */
    rev: Type.Integer({ minimum: 1 }),
    issuer: Type.String({ pattern: "^urn:cotal:auth:[A-Za-z0-9_-]{1,64}$" }),
    activeKid: Key32,
    keys: Type.Array(IssuerKey, { minItems: 1, maxItems: ISSUER.maxKeys }),
  },
  closed,
);
export type IssuerFile = Static<typeof IssuerFile>;

export const issuerDocument = document(IssuerFile, ({ keys, activeKid }) => {
  if (new Set(keys.map(({ kid }) => kid)).size !== keys.length) return "/keys holds one key twice";
  for (const [i, { kid, privateJwk, activeAt, stoppedAt }] of keys.entries()) {
    if (thumbprint(privateJwk.x) !== kid) return `/keys/${i}/kid is not the key's thumbprint`;
    if (publicHalf(privateJwk) !== privateJwk.x) return `/keys/${i}/privateJwk has halves of two keys`;
    if (stoppedAt !== undefined && activeAt === undefined) return `/keys/${i} stopped before it signed`;
    const signs = activeAt !== undefined && stoppedAt === undefined;
    if (signs !== (kid === activeKid)) return `/keys/${i} and /activeKid disagree on who signs`;
  }
  return keys.some(({ kid }) => kid === activeKid) ? undefined : "/activeKid names no key";
});

/** What `iss` says in the bearers of a space. */
const issuerOf = (space: Space): string => `urn:cotal:auth:${space}`;

/** The first file of a space: one key, signing at once. */
export function newIssuerFile(space: Space, ports: Ports): IssuerFile {
  const key = newIssuerKey(ports);
  return { ver: 1, rev: 1, issuer: issuerOf(space), activeKid: key.kid, keys: [{ ...key, activeAt: key.publishedAt }] };
}

/** A fresh key, published now, not signing. */
export function newIssuerKey(ports: Ports): IssuerKey {
  const d = Buffer.from(ports.random(32)).toString("base64url");
  const x = publicHalf({ d });
  return { kid: thumbprint(x), privateJwk: { kty: "OKP", crv: "Ed25519", x, d }, publishedAt: ports.now() };
}

/** RFC 7638: SHA-256 of the canonical JSON of the required members. */
function thumbprint(x: string): string {
  return Buffer.from(sha256Hex(canonicalBytes({ crv: "Ed25519", kty: "OKP", x })), "hex").toString("base64url");
}

const PKCS8_ED25519 = Buffer.from("302e020100300506032b657004220420", "hex");

function publicHalf({ d }: { d: string }): string {
  const key = Buffer.concat([PKCS8_ED25519, Buffer.from(d, "base64url")]);
  const { x } = createPublicKey(createPrivateKey({ key, format: "der", type: "pkcs8" })).export({ format: "jwk" });
  if (x === undefined) throw internal("a key without public half");
  return x;
}
