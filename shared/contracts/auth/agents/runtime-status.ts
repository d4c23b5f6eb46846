import { exampleEnvelope, exampleIncarnation, exampleProof, exampleServe } from "../../example.ts";
import { Closed, operation, Void } from "../../operation.ts";
import { Incarnation } from "../../shapes.ts";
import { envelope, proof, serve } from "../manager-envelope.ts";

const kind = "manager-managed-agent-runtime-status";

export const agentRuntimeStatus = operation({
  service: "auth",
  name: "agent-runtime-status",
  summary: "Catalogued and refused: the authority hosts no runtimes",
  effect: "read",
  input: Closed({ ...envelope(kind), ...proof, ...serve, target: Incarnation }),
  output: Void,
  callers: ["human", "manager"],
  scope: "supervise",
  http: { kind },
  errors: ["permission-denied", "failed-precondition", "conflict", "unimplemented"],
  example: { ...exampleEnvelope(kind), ...exampleProof, ...exampleServe, target: exampleIncarnation },
});
