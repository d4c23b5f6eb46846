/** `actor.<o>.<a>`: who may do what, active or revoked (state §3, identity §6). */
import Type, { type Static } from "typebox";
import { Actor as ActorToken, ChannelPattern, Hex64, Owner, Principal, RoleName, Scope } from "../tokens.ts";
import { family } from "./family.ts";
import { closed, Lifecycle, Ms, oneOf, Text } from "./members.ts";

const ActorRow = closed({
  ver: Type.Literal(1),
  ...Lifecycle,
  kind: oneOf("interactive", "managed"),
  state: oneOf("active", "revoked"),
  scope: Type.Array(Scope.schema),
  allowSubscribe: Type.Array(ChannelPattern.schema),
  allowPublish: Type.Array(ChannelPattern.schema),
  role: Type.Optional(RoleName.schema),
  /** The principal that spawned a managed actor. */
  parent: Type.Optional(Principal.schema),
  label: Type.Optional(Text),
  /** SHA-256 of a managed actor's secret. */
  tokenHash: Type.Optional(Hex64.schema),
  grantedAt: Ms,
  grantedBy: Principal.schema,
  revokedAt: Type.Optional(Ms),
  revokedBy: Type.Optional(Principal.schema),
});
export type Actor = Static<typeof ActorRow>;

export const actorRows = family({
  stream: "auth",
  pattern: "actor.{owner}.{actor}",
  parts: { owner: Owner, actor: ActorToken },
  schema: ActorRow,
  agrees: (row, key) =>
    row.owner === key.owner &&
    row.actor === key.actor &&
    (row.kind === "managed") === (row.tokenHash !== undefined) &&
    (row.kind === "managed" || row.parent === undefined) &&
    (row.state === "revoked" || (row.revokedAt === undefined && row.revokedBy === undefined)),
  // An active row never changes but to revoked; an alias is granted again as another incarnation of the same kind.
  admits: (from, to) =>
    from === undefined
      ? to.state === "active"
      : from.kind === to.kind &&
        from.state !== to.state &&
        (from.lifecycleUid === to.lifecycleUid) === (to.state === "revoked"),
});
