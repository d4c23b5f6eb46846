import Type from "typebox";
import { ARGUMENT, MANAGER } from "../../../limits.ts";
import { Actor, EndpointLabel, EnvelopeId, Owner, Uid } from "../../../tokens.ts";
import { exampleEnvelope, exampleProof, exampleServe } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Text } from "../../shapes.ts";
import { envelope, ISSUING_CALLERS, proof, provenEcho, serve } from "../manager-envelope.ts";

const kind = "manager-goal-index-scan";

/** One entry of the goal writer's index (records §4). */
const GoalIndex = Closed({
  v: Type.Literal(1),
  endpoint: EndpointLabel.schema,
  owner: Owner.schema,
  actor: Actor.schema,
  uid: Uid.schema,
  goalId: EnvelopeId.schema,
  iid: Uid.schema,
  allocated: Type.Optional(Type.Boolean()),
  note: Type.Optional(Text(ARGUMENT.note, 0)),
});

export const managerScanGoals = operation({
  service: "auth",
  name: "manager-scan-goals",
  summary: "Lists the goals of the manager's owner, all or none",
  effect: "read",
  input: Closed({ ...envelope(kind), ...proof, ...serve }),
  output: Closed({ ...provenEcho(kind), entries: Type.Array(GoalIndex, { maxItems: MANAGER.goalEntries }) }),
  callers: ISSUING_CALLERS,
  scope: "supervise",
  http: { kind },
  errors: ["permission-denied", "failed-precondition", "conflict", "resource-exhausted"],
  example: { ...exampleEnvelope(kind), ...exampleProof, ...exampleServe },
});
