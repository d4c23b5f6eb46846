import Type from "typebox";
import { ARGUMENT } from "../../../limits.ts";
import { Actor, Owner, PersonOwner, RequestId, RoleName, Uid } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Millis, Text } from "../../shapes.ts";
import { grants } from "./actor-row.ts";

export const actorGrant = operation({
  service: "auth",
  name: "actor-grant",
  summary: "Activates an interactive actor; a change is a revoke, then a grant",
  effect: "write",
  input: Closed({
    requestId: RequestId.schema,
    owner: PersonOwner.schema,
    actor: Actor.schema,
    ...grants,
    role: Type.Optional(RoleName.schema),
    label: Type.Optional(Text(ARGUMENT.label)),
  }),
  output: Closed({
    requestId: RequestId.schema,
    owner: Owner.schema,
    actor: Actor.schema,
    lifecycleUid: Uid.schema,
    grantedAt: Millis,
  }),
  callers: ["operator", "admin"],
  errors: ["permission-denied", "already-exists", "failed-precondition", "conflict"],
  example: {
    requestId: EXAMPLE.requestId,
    owner: EXAMPLE.owner,
    actor: EXAMPLE.actor,
    scope: ["supervise", "run", "spawn"],
    allowSubscribe: ["general", "team.>"],
    allowPublish: ["general"],
    label: "Alice at the terminal",
  },
});
