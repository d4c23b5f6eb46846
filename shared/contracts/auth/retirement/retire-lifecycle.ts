import Type from "typebox";
import { SafeInteger } from "../../../envelope.ts";
import { EndpointLabel, Uid } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Principals } from "../../shapes.ts";

/** The target is the subject's; the serve coordinates choose a gate and grant nothing. */
export const retireLifecycle = operation({
  service: "auth",
  name: "retire-lifecycle",
  summary: "Retires the incarnation that the requester's credential names",
  effect: "write",
  input: Closed({
    opId: Uid.schema,
    serveEndpoint: EndpointLabel.schema,
    serveInstanceId: Uid.schema,
    serveEpoch: SafeInteger(),
  }),
  output: Closed({
    retired: Type.Literal(true),
    lifecycleUid: Uid.schema,
    opId: Uid.schema,
    evictedPrincipals: Principals,
  }),
  callers: ["requester"],
  modes: ["exact"],
  errors: ["permission-denied", "not-found", "expired", "failed-precondition", "conflict", "unavailable"],
  example: { opId: EXAMPLE.opId, serveEndpoint: "manager", serveInstanceId: EXAMPLE.instanceId, serveEpoch: 3 },
});
