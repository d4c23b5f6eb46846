import Type from "typebox";
import { RequestId, Uid } from "../../../tokens.ts";
import { EXAMPLE, exampleIncarnation } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { incarnation } from "../../shapes.ts";

export const agentRetire = operation({
  service: "auth",
  name: "agent-retire",
  summary: "Retires a managed agent whose manager cannot ask for it any more",
  effect: "write",
  input: Closed({ requestId: RequestId.schema, ...incarnation }),
  output: Type.Union([
    /** Nothing stands at this uid. */
    Closed({ retired: Type.Literal(false), lifecycleUid: Uid.schema, notStarted: Type.Literal(true) }),
    Closed({
      retired: Type.Literal(true),
      lifecycleUid: Uid.schema,
      alreadyRetired: Type.Optional(Type.Literal(true)),
    }),
  ]),
  callers: ["operator"],
  errors: ["conflict", "failed-precondition", "unavailable"],
  example: { requestId: EXAMPLE.requestId, ...exampleIncarnation },
});
