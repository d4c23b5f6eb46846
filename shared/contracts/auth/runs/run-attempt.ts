import Type from "typebox";
import { SafeInteger } from "../../../envelope.ts";
import { ARGUMENT } from "../../../limits.ts";
import { RunId, TakeoverId, UserNkey } from "../../../tokens.ts";
import { EXAMPLE, exampleAccount, exampleEnvelope, exampleNkey, exampleProof } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Signed, Text } from "../../shapes.ts";
import { ISSUING_CALLERS } from "../manager-envelope.ts";
import { attemptInput, attemptOutput, RUN_ATTEMPT } from "./attempt.ts";

const Attempt = Closed({
  runId: RunId.schema,
  takeoverId: TakeoverId.schema,
  /** One more than the run's recorded numbers; the first attempt is 1 and 1. */
  epoch: SafeInteger(1),
  fencingToken: SafeInteger(1),
  driverId: UserNkey.schema,
  mediatorId: UserNkey.schema,
  /** The observed `run-resume` request; absent at a first start and at boot. */
  served: Type.Optional(Text(ARGUMENT.served)),
});

export const runAttempt = operation({
  service: "auth",
  name: "run-attempt",
  summary: "Issues the driver and mediator credentials of a run's next attempt",
  effect: "write",
  input: Closed({ ...attemptInput, attempt: Attempt }),
  output: Closed({ ...attemptOutput, attempt: Attempt, credentials: Closed({ driver: Signed, mediator: Signed }) }),
  callers: ISSUING_CALLERS,
  scope: "supervise",
  http: { kind: RUN_ATTEMPT, member: "attempt" },
  errors: ["permission-denied", "failed-precondition", "conflict", "expired", "resource-exhausted"],
  example: {
    ...exampleEnvelope(RUN_ATTEMPT),
    ...exampleProof,
    ...exampleAccount,
    attempt: {
      runId: EXAMPLE.runId,
      takeoverId: "4f1c9a7be2d80356",
      epoch: 1,
      fencingToken: 1,
      driverId: exampleNkey("F"),
      mediatorId: exampleNkey("G"),
    },
  },
});
