import { exampleEnvelope, exampleProof } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Signed } from "../../shapes.ts";
import { ISSUING_CALLERS, material, proof, SERVICE_AUTHORITY, serviceAuthority } from "../manager-envelope.ts";

export const managerRenew = operation({
  service: "auth",
  name: "manager-renew",
  summary: "Renews the supervisor and executor credentials of a registered manager instance",
  effect: "write",
  input: Closed({ ...serviceAuthority("renew"), ...proof }),
  output: Closed({ ...material("renew"), ...proof, credentials: Closed({ supervisor: Signed, executor: Signed }) }),
  callers: [...ISSUING_CALLERS, "supervisor"],
  scope: "supervise",
  http: { kind: SERVICE_AUTHORITY, operation: "renew" },
  errors: ["permission-denied", "failed-precondition", "conflict", "expired"],
  example: { ...exampleEnvelope(SERVICE_AUTHORITY, "renew"), ...exampleProof },
});
