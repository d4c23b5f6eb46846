import Type from "typebox";
import { ARGUMENT } from "../../../limits.ts";
import { RequestId, RunId } from "../../../tokens.ts";
import { EXAMPLE, exampleAccount, exampleEnvelope, exampleProof } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Text } from "../../shapes.ts";
import { account, envelope, proof } from "../manager-envelope.ts";
import { Revocation } from "./admission.ts";

const kind = "manager-run-revoke";

export const runRevoke = operation({
  service: "auth",
  name: "run-revoke",
  summary: "Takes a run back for good and ends its credentials",
  effect: "write",
  input: Closed({
    ...envelope(kind),
    ...proof,
    ...account,
    revoke: Closed({ runId: RunId.schema, reason: Text(ARGUMENT.revokeReason) }),
  }),
  output: Closed({
    v: Type.Literal(1),
    kind: Type.Literal(kind),
    requestId: RequestId.schema,
    runId: RunId.schema,
    /** The first marker, with its first attribution. */
    revocation: Revocation,
  }),
  callers: ["human", "manager"],
  http: { kind },
  errors: ["permission-denied", "failed-precondition", "conflict"],
  example: {
    ...exampleEnvelope(kind),
    ...exampleProof,
    ...exampleAccount,
    revoke: { runId: EXAMPLE.runId, reason: "started by mistake" },
  },
});
