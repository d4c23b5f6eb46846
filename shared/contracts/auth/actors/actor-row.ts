/** An actor row as others see it: without the hash of its secret (state §3). */
import Type from "typebox";
import { ARGUMENT } from "../../../limits.ts";
import { Actor, ChannelPattern, Owner, Principal, RoleName, Scope, Uid } from "../../../tokens.ts";
import { Closed } from "../../operation.ts";
import { Millis, Text } from "../../shapes.ts";

export const ActorKind = Type.Enum(["interactive", "managed"]);

/** The row's key in the authority store. */
export const ActorKey = Type.String({
  pattern: "^actor\\.(local|[up]_[a-z2-7]{26})\\.[A-Za-z0-9_]{1,64}$",
  maxLength: 128,
});

/** One of an actor's three lists; an empty one means none. */
export const Scopes = Type.Array(Scope.schema, { maxItems: ARGUMENT.list });
export const Channels = Type.Array(ChannelPattern.schema, { maxItems: ARGUMENT.list });

/** What an actor may do. */
export const grants = { scope: Scopes, allowSubscribe: Channels, allowPublish: Channels };

export const ActorRow = Closed({
  ver: Type.Literal(1),
  owner: Owner.schema,
  actor: Actor.schema,
  kind: ActorKind,
  state: Type.Enum(["active", "revoked"]),
  lifecycleUid: Uid.schema,
  ...grants,
  role: Type.Optional(RoleName.schema),
  /** The principal that spawned a managed actor. */
  parent: Type.Optional(Principal.schema),
  label: Type.Optional(Text(ARGUMENT.note, 0)),
  grantedAt: Millis,
  grantedBy: Principal.schema,
  revokedAt: Type.Optional(Millis),
  revokedBy: Type.Optional(Principal.schema),
});
