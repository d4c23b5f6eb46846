import Type from "typebox";
import { Uid } from "../../../tokens.ts";
import { EXAMPLE, exampleEnvelope, exampleIncarnation, exampleProof, exampleServe } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Incarnation } from "../../shapes.ts";
import { echo, envelope, proof, serve } from "../manager-envelope.ts";

const kind = "manager-managed-agent-prepare-retirement";

export const agentPrepareRetirement = operation({
  service: "auth",
  name: "agent-prepare-retirement",
  summary: "Takes an agent's authority away while its process is still to be ended",
  effect: "write",
  input: Closed({ ...envelope(kind), ...proof, ...serve, target: Incarnation, opId: Uid.schema }),
  output: Closed({ ...echo(kind), target: Incarnation, opId: Uid.schema, prepared: Type.Literal(true) }),
  callers: ["human", "manager"],
  scope: "supervise",
  http: { kind },
  errors: ["permission-denied", "not-found", "expired", "failed-precondition", "conflict", "unavailable"],
  example: {
    ...exampleEnvelope(kind),
    ...exampleProof,
    ...exampleServe,
    target: exampleIncarnation,
    opId: EXAMPLE.opId,
  },
});
