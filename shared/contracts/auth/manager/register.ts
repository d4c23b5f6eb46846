import Type from "typebox";
import { SafeInteger } from "../../../envelope.ts";
import { Digest, RequestId, Uid } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";

export const managerRegister = operation({
  service: "auth",
  name: "manager-register",
  summary: "Registers what a manager instance has published and gives its next epoch",
  effect: "write",
  input: Closed({
    v: Type.Literal(1),
    requestId: RequestId.schema,
    instanceId: Uid.schema,
    managerLifecycleUid: Uid.schema,
  }),
  output: Closed({
    v: Type.Literal(1),
    requestId: RequestId.schema,
    instanceId: Uid.schema,
    generation: SafeInteger(),
    processEpoch: SafeInteger(),
    registrationRevision: SafeInteger(1),
    clusterDigest: Digest.schema,
  }),
  callers: ["manager"],
  scope: "supervise",
  errors: ["failed-precondition", "permission-denied", "contract-invalid", "conflict", "unavailable"],
  example: {
    v: 1,
    requestId: EXAMPLE.requestId,
    instanceId: EXAMPLE.instanceId,
    managerLifecycleUid: EXAMPLE.managerLifecycleUid,
  },
});
