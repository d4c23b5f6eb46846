import Type from "typebox";
import { SafeInteger } from "../../../envelope.ts";
import { ARGUMENT } from "../../../limits.ts";
import { RequestId, RunId } from "../../../tokens.ts";
import { EXAMPLE, exampleAccount, exampleEnvelope, exampleProof } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Text } from "../../shapes.ts";
import { account, envelope, ISSUING_CALLERS, proof } from "../manager-envelope.ts";
import { Admission } from "./admission.ts";

const kind = "manager-run-admission";

export const runAdmit = operation({
  service: "auth",
  name: "run-admit",
  summary: "Lets a run in on the strength of the observed request that started it",
  effect: "write",
  input: Closed({
    ...envelope(kind),
    ...proof,
    ...account,
    /** `subject` is the one on which the caller asked for the run. */
    run: Closed({ runId: RunId.schema, subject: Text(ARGUMENT.runSubject) }),
  }),
  output: Closed({
    v: Type.Literal(1),
    kind: Type.Literal(kind),
    requestId: RequestId.schema,
    runId: RunId.schema,
    /** The admission's store revision. */
    revision: SafeInteger(),
    admission: Admission,
  }),
  callers: ISSUING_CALLERS,
  scope: "supervise",
  http: { kind },
  errors: ["permission-denied", "failed-precondition", "conflict"],
  example: {
    ...exampleEnvelope(kind),
    ...exampleProof,
    ...exampleAccount,
    run: {
      runId: EXAMPLE.runId,
      subject: `cotal.demo.ep.v1.one.manager.run-start.${EXAMPLE.owner}.cli.${EXAMPLE.lifecycleUid}.${"0a".repeat(16)}.${EXAMPLE.requestId}`,
    },
  },
});
