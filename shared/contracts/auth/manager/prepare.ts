import { exampleEnvelope } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Signed } from "../../shapes.ts";
import { ISSUING_CALLERS, material, SERVICE_AUTHORITY, serviceAuthority } from "../manager-envelope.ts";

export const managerPrepare = operation({
  service: "auth",
  name: "manager-prepare",
  summary: "Makes a manager instance known and issues its supervisor and executor credentials",
  effect: "write",
  input: Closed(serviceAuthority("prepare")),
  output: Closed({ ...material("prepare"), credentials: Closed({ supervisor: Signed, executor: Signed }) }),
  callers: [...ISSUING_CALLERS, "supervisor"],
  scope: "supervise",
  http: { kind: SERVICE_AUTHORITY, operation: "prepare" },
  errors: ["permission-denied", "failed-precondition", "resource-exhausted", "conflict", "expired"],
  example: exampleEnvelope(SERVICE_AUTHORITY, "prepare"),
});
