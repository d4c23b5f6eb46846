import { Closed, operation } from "../operation.ts";
import { Evictions, EvictionTargets } from "../shapes.ts";

export const evictPrincipals = operation({
  service: "custodian",
  name: "evict-principals",
  summary: "Ends every connection of these principals and proves them gone",
  effect: "write",
  input: Closed({ principals: EvictionTargets }),
  /** In the order of the request. */
  output: Closed({ evictions: Evictions }),
  callers: ["authority"],
  errors: ["permission-denied", "failed-precondition", "resource-exhausted", "unavailable"],
  example: { principals: ["u_qzgcmqkl3272ed2stsjzbvrqga.coder"] },
});
