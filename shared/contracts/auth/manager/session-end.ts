import Type from "typebox";
import { Actor, RequestId, SessionId } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";

export const managerSessionEnd = operation({
  service: "auth",
  name: "manager-session-end",
  summary: "Ends a session and both of its credentials",
  effect: "write",
  input: Closed({
    v: Type.Literal(1),
    requestId: RequestId.schema,
    actor: Actor.schema,
    sessionId: SessionId.schema,
    reason: Type.Enum(["process-exit", "closed", "target-despawn", "manager-restart"]),
  }),
  output: Closed({
    v: Type.Literal(1),
    requestId: RequestId.schema,
    sessionId: SessionId.schema,
    state: Type.Enum(["closed", "expired", "superseded", "retired"]),
  }),
  callers: ["session-holder", "manager"],
  errors: ["not-found", "permission-denied", "conflict"],
  example: {
    v: 1,
    requestId: EXAMPLE.requestId,
    actor: EXAMPLE.actor,
    sessionId: "s7Qm1xVb7sKQd4tYpAzR2w",
    reason: "closed",
  },
});
