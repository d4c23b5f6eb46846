import { SafeInteger } from "../../../envelope.ts";
import { Uid, UserNkey } from "../../../tokens.ts";
import { EXAMPLE, exampleEnvelope, exampleIncarnation, exampleNkey, exampleProof } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Incarnation, Signed } from "../../shapes.ts";
import { ISSUING_CALLERS, material, proof, SERVICE_AUTHORITY, serviceAuthority } from "../manager-envelope.ts";

const name = "retire";

const Retirement = Closed({ id: UserNkey.schema, target: Incarnation, opId: Uid.schema, serveEpoch: SafeInteger() });

export const managerRetire = operation({
  service: "auth",
  name: "manager-retire",
  summary: "Issues the short credential that asks for one retirement; retires nothing by itself",
  effect: "write",
  input: Closed({ ...serviceAuthority(name), ...proof, retirement: Retirement }),
  output: Closed({
    ...material(name),
    ...proof,
    retirement: Retirement,
    credentials: Closed({ retirementRequester: Signed }),
  }),
  callers: ISSUING_CALLERS,
  scope: "supervise",
  http: { kind: SERVICE_AUTHORITY, operation: name },
  errors: ["permission-denied", "failed-precondition", "conflict", "expired"],
  example: {
    ...exampleEnvelope(SERVICE_AUTHORITY, name),
    ...exampleProof,
    retirement: { id: exampleNkey("F"), target: exampleIncarnation, opId: EXAMPLE.opId, serveEpoch: 3 },
  },
});
