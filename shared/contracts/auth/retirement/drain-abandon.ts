import Type from "typebox";
import { SafeInteger } from "../../../envelope.ts";
import { ARGUMENT } from "../../../limits.ts";
import { RequestId, Uid } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";

/** The key of an obligation under a uid (records §3). */
const ObligationKey = Type.String({
  pattern: "^oblig\\.[a-z0-9]{26,32}(\\.[A-Za-z0-9_-]+)+$",
  maxLength: ARGUMENT.drainKey,
});

export const drainAbandon = operation({
  service: "auth",
  name: "drain-abandon",
  summary: "Ends an obligation that nobody is left to settle, so that a retirement can finish",
  effect: "write",
  input: Closed({
    requestId: RequestId.schema,
    opId: Uid.schema,
    key: ObligationKey,
    /** The store revision that was looked at. */
    revision: SafeInteger(1),
  }),
  output: Closed({
    requestId: RequestId.schema,
    opId: Uid.schema,
    key: ObligationKey,
    state: Type.Literal("terminal"),
    outcome: Type.Literal("abandoned"),
  }),
  callers: ["operator"],
  errors: ["not-found", "failed-precondition", "conflict"],
  example: {
    requestId: EXAMPLE.requestId,
    opId: EXAMPLE.opId,
    key: `oblig.${EXAMPLE.lifecycleUid}.manager.${EXAMPLE.owner}.cli.${EXAMPLE.managerLifecycleUid}.goal-1`,
    revision: 4711,
  },
});
