import Type from "typebox";
import { CUSTODIAN } from "../../limits.ts";
import { Principal } from "../../tokens.ts";
import { Closed, operation } from "../operation.ts";
import { Text } from "../shapes.ts";
import { Liveness } from "./liveness.ts";

export const principalLiveness = operation({
  service: "custodian",
  name: "principal-liveness",
  summary: "Says whether a principal has a connection, is proven gone, or neither is known",
  effect: "read",
  input: Closed({ principal: Principal.schema }),
  output: Closed({
    principal: Principal.schema,
    state: Liveness,
    sweepComplete: Type.Boolean(),
    note: Type.Optional(Text(CUSTODIAN.maxNote, 0)),
  }),
  callers: ["authority"],
  errors: ["permission-denied", "failed-precondition", "resource-exhausted", "unavailable"],
  example: { principal: "u_qzgcmqkl3272ed2stsjzbvrqga.coder" },
});
