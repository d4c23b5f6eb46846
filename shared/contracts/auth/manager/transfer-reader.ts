import { exampleEnvelope, exampleNkey, exampleProof } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Signed } from "../../shapes.ts";
import { Id, ISSUING_CALLERS, material, proof, SERVICE_AUTHORITY, serviceAuthority } from "../manager-envelope.ts";

const name = "transferReader";

export const managerTransferReader = operation({
  service: "auth",
  name: "manager-transfer-reader",
  summary: "Issues a short credential to read the instance's own transfers",
  effect: "write",
  input: Closed({ ...serviceAuthority(name), ...proof, transferReader: Id }),
  output: Closed({ ...material(name), ...proof, credentials: Closed({ transferReader: Signed }) }),
  callers: ISSUING_CALLERS,
  scope: "supervise",
  http: { kind: SERVICE_AUTHORITY, operation: name },
  errors: ["permission-denied", "failed-precondition", "conflict", "expired"],
  example: {
    ...exampleEnvelope(SERVICE_AUTHORITY, name),
    ...exampleProof,
    transferReader: { id: exampleNkey("F") },
  },
});
