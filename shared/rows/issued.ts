/** `v1.<o>.<a>.<u>.<g>`: evidence of one issued permission ceiling; the first message counts (state §7). */
import Type, { type Static } from "typebox";
import { LIFE } from "../limits.ts";
import { Actor, Generation, Owner, Space, Uid } from "../tokens.ts";
import { family, secondsUntil } from "./family.ts";
import { closed, Ms, oneOf, Text } from "./members.ts";

/** Names one recorded ceiling. */
export const Ref = closed({
  space: Space.schema,
  owner: Owner.schema,
  actor: Actor.schema,
  uid: Uid.schema,
  generation: Generation.schema,
});
export type Ref = Static<typeof Ref>;

/** Patterns exactly where the mode is `patterns`. */
export const Rule = closed({
  allow: Type.Union([
    closed({ mode: oneOf("all", "none") }),
    closed({ mode: Type.Literal("patterns"), patterns: Type.Array(Text) }),
  ]),
  deny: Type.Array(Text),
});
export type Rule = Static<typeof Rule>;

/** The most a connection may publish and subscribe. */
export const Ceiling = closed({ publish: Rule, subscribe: Rule });
export type Ceiling = Static<typeof Ceiling>;

const IssuedRow = closed({
  version: Type.Literal(1),
  ref: Ref,
  /** The rows it stands on; it resolves while every one of them is live. */
  sources: Type.Array(closed({ space: Space.schema, bucket: Text, key: Text })),
  permissions: Ceiling,
  expiresAt: Type.Optional(Ms),
});
export type Issued = Static<typeof IssuedRow>;

/** Whether a reference names the lifecycle and generation in a key. */
const isRefOf = (ref: Ref, key: Omit<Ref, "space">): boolean =>
  ref.owner === key.owner && ref.actor === key.actor && ref.uid === key.uid && ref.generation === key.generation;

export const issuedRows = family({
  stream: "issued",
  pattern: "v1.{owner}.{actor}.{uid}.{generation}",
  parts: { owner: Owner, actor: Actor, uid: Uid, generation: Generation },
  schema: IssuedRow,
  agrees: (row, key) => isRefOf(row.ref, key),
  admits: (from) => from === undefined,
  lifetime: (row, now) =>
    row.expiresAt === undefined ? undefined : secondsUntil(row.expiresAt, now) + LIFE.rowMarginS,
});
