import { exampleAccount, exampleEnvelope, exampleProof } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Signed } from "../../shapes.ts";
import { account, ISSUING_CALLERS, material, proof, SERVICE_AUTHORITY, serviceAuthority } from "../manager-envelope.ts";

const name = "renewStandingBundle";

export const managerRenewStanding = operation({
  service: "auth",
  name: "manager-renew-standing",
  summary: "Renews all five standing credentials; the serve surface is the registered one",
  effect: "write",
  input: Closed({ ...serviceAuthority(name), ...proof, ...account }),
  output: Closed({
    ...material(name),
    ...proof,
    ...account,
    credentials: Closed({
      supervisor: Signed,
      executor: Signed,
      serve: Signed,
      goalWriter: Signed,
      sessionLedger: Signed,
    }),
  }),
  callers: [...ISSUING_CALLERS, "supervisor"],
  scope: "supervise",
  http: { kind: SERVICE_AUTHORITY, operation: name },
  errors: ["permission-denied", "failed-precondition", "conflict", "expired"],
  example: { ...exampleEnvelope(SERVICE_AUTHORITY, name), ...exampleProof, ...exampleAccount },
});
