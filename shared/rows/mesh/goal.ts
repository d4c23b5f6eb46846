/** `goalidx.<e>.<triple>.<goalId>`: the index of goals that a manager's goal writer keeps (records §4). */
import Type, { type Static } from "typebox";
import { Actor, EndpointLabel, EnvelopeId, Owner, Uid } from "../../tokens.ts";
import { family } from "../family.ts";
import { closed, Text } from "../members.ts";

const GoalIndexRow = closed({
  v: Type.Literal(1),
  endpoint: EndpointLabel.schema,
  owner: Owner.schema,
  actor: Actor.schema,
  uid: Uid.schema,
  goalId: EnvelopeId.schema,
  iid: Uid.schema,
  allocated: Type.Optional(Type.Boolean()),
  note: Type.Optional(Text),
});
export type GoalIndex = Static<typeof GoalIndexRow>;

export const goalIndexRows = family({
  stream: "records",
  pattern: "goalidx.{endpoint}.{owner}.{actor}.{uid}.{goalId}",
  parts: { endpoint: EndpointLabel, owner: Owner, actor: Actor, uid: Uid, goalId: EnvelopeId },
  schema: GoalIndexRow,
  agrees: (row, key) =>
    row.endpoint === key.endpoint &&
    row.owner === key.owner &&
    row.actor === key.actor &&
    row.uid === key.uid &&
    row.goalId === key.goalId,
});
