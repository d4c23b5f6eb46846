/** `trust` and `inbox.<nonce>`: what connecting needs (identity §1.3, §9.2). */
import Type, { type Static } from "typebox";
import { LIFE } from "../limits.ts";
import { Digest, Nonce } from "../tokens.ts";
import { family, secondsUntil } from "./family.ts";
import { Count, closed, Lifecycle, Ms, Text } from "./members.ts";

/** A public Ed25519 key as JWKS publishes it. */
const PublicJwk = closed({
  kty: Type.Literal("OKP"),
  crv: Type.Literal("Ed25519"),
  x: Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" }),
  kid: Text,
  use: Type.Optional(Type.Literal("sig")),
  alg: Type.Optional(Type.String({ pattern: "^(EdDSA|Ed25519)$" })),
});
export type PublicJwk = Static<typeof PublicJwk>;

const TrustRow = closed({
  v: Type.Literal(1),
  rev: Count,
  issuer: Text,
  activeKid: Text,
  keys: Type.Array(PublicJwk, { minItems: 1 }),
  /** Digest of the owner secret: nobody derives owners with another one. */
  ownerCommitment: Digest.schema,
});
export type Trust = Static<typeof TrustRow>;

export const trustRows = family({
  stream: "connect",
  pattern: "trust",
  parts: {},
  schema: TrustRow,
  agrees: (row) => row.keys.some((key) => key.kid === row.activeKid),
  admits: (from, to) => from === undefined || to.rev > from.rev,
});

/** Whose inbox a nonce names: a reply shows the nonce, and nobody else may connect under it. */
const InboxRow = closed({ ...Lifecycle, exp: Ms });
export const inboxRows = family({
  stream: "connect",
  pattern: "inbox.{nonce}",
  parts: { nonce: Nonce },
  schema: InboxRow,
  admits: (from, to) =>
    from === undefined ||
    (to.exp >= from.exp && to.owner === from.owner && to.actor === from.actor && to.lifecycleUid === from.lifecycleUid),
  lifetime: (row, now) => secondsUntil(row.exp, now) + LIFE.rowMarginS,
});
