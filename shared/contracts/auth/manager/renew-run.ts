import Type from "typebox";
import { SafeInteger } from "../../../envelope.ts";
import { ARGUMENT } from "../../../limits.ts";
import { RunId, UserNkey } from "../../../tokens.ts";
import { EXAMPLE, exampleAccount, exampleEnvelope, exampleNkey, exampleProof } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Signed } from "../../shapes.ts";
import { account, ISSUING_CALLERS, material, proof, SERVICE_AUTHORITY, serviceAuthority } from "../manager-envelope.ts";

const name = "renewRunDriver";
const takeoverId = "4f1c9a7be2d80356";

const Run = Closed({
  runId: RunId.schema,
  /** `<supervisor nkey>.<takeoverId>`, as the run's status names it. */
  holder: Type.String({ pattern: "^[A-Za-z0-9_.-]{1,256}$", maxLength: ARGUMENT.holder }),
  takeoverId: Type.String({ pattern: "^[0-9a-f]{16}$", maxLength: 16 }),
  epoch: SafeInteger(1),
  fencingToken: SafeInteger(1),
  driverId: UserNkey.schema,
  mediatorId: UserNkey.schema,
});

export const managerRenewRun = operation({
  service: "auth",
  name: "manager-renew-run",
  summary: "Renews the driver and mediator credentials of a run that this instance still holds",
  effect: "write",
  input: Closed({ ...serviceAuthority(name), ...proof, ...account, run: Run }),
  output: Closed({
    ...material(name),
    ...proof,
    ...account,
    run: Run,
    credentials: Closed({ runDriver: Signed, runMediator: Signed }),
  }),
  callers: ISSUING_CALLERS,
  scope: "supervise",
  http: { kind: SERVICE_AUTHORITY, operation: name },
  errors: ["permission-denied", "failed-precondition", "conflict", "expired"],
  example: {
    ...exampleEnvelope(SERVICE_AUTHORITY, name),
    ...exampleProof,
    ...exampleAccount,
    run: {
      runId: EXAMPLE.runId,
      holder: `${exampleNkey("A")}.${takeoverId}`,
      takeoverId,
      epoch: 1,
      fencingToken: 1,
      driverId: exampleNkey("F"),
      mediatorId: exampleNkey("G"),
    },
  },
});
