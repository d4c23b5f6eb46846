import Type from "typebox";
import { ARGUMENT } from "../../../limits.ts";
import { RunId, TakeoverId, UserNkey } from "../../../tokens.ts";
import { EXAMPLE, exampleAccount, exampleEnvelope, exampleNkey, exampleProof } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Signed, Text } from "../../shapes.ts";
import { ISSUING_CALLERS } from "../manager-envelope.ts";
import { attemptInput, attemptOutput, RUN_ATTEMPT } from "./attempt.ts";

const who = { id: UserNkey.schema, takeoverId: TakeoverId.schema };

/** Lists and reads, or answers one step: never both, and `served` with an answer alone. */
const Operator = Type.Union([
  Closed({ ...who, runId: Type.Optional(RunId.schema) }),
  Closed({
    ...who,
    answers: Closed({
      runId: RunId.schema,
      stepKey: Text(ARGUMENT.stepKey),
      amend: Type.Optional(Type.Literal(true)),
    }),
    /** The observed `run-answer` request. */
    served: Type.Optional(Text(ARGUMENT.served)),
  }),
]);

export const runOperator = operation({
  service: "auth",
  name: "run-operator",
  summary: "Issues a short credential to look at runs or to answer one step",
  effect: "write",
  input: Closed({ ...attemptInput, operator: Operator }),
  output: Closed({ ...attemptOutput, operator: Operator, credentials: Closed({ operator: Signed }) }),
  callers: ISSUING_CALLERS,
  scope: "supervise",
  http: { kind: RUN_ATTEMPT, member: "operator" },
  errors: ["permission-denied", "failed-precondition", "conflict", "expired", "resource-exhausted"],
  example: {
    ...exampleEnvelope(RUN_ATTEMPT),
    ...exampleProof,
    ...exampleAccount,
    operator: {
      id: exampleNkey("F"),
      takeoverId: "4f1c9a7be2d80356",
      answers: { runId: EXAMPLE.runId, stepKey: "main/ask:deploy#1" },
      served: `cotal.demo.ep.v1.one.manager.run-answer.${EXAMPLE.owner}.cli.${EXAMPLE.lifecycleUid}.${"0a".repeat(16)}.${EXAMPLE.requestId}`,
    },
  },
});
