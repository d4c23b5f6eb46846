import Type from "typebox";
import { Uid } from "../../../tokens.ts";
import { EXAMPLE, exampleEnvelope } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Evictions, EvictionTargets } from "../../shapes.ts";
import { echo, Identities, ISSUING_CALLERS, SERVICE_MAINTENANCE, serviceMaintenance } from "../manager-envelope.ts";

const name = "evict-family-principal";

export const managerMaintainEvict = operation({
  service: "auth",
  name: "manager-maintain-evict",
  summary: "Ends connections of an instance's own family; changes no row",
  effect: "write",
  input: Closed({ ...serviceMaintenance(name), principals: EvictionTargets }),
  output: Closed({
    ...echo(SERVICE_MAINTENANCE),
    operation: Type.Literal(name),
    identities: Identities,
    targetInstanceId: Uid.schema,
    principals: EvictionTargets,
    /** In the order of `principals`. */
    evictions: Evictions,
  }),
  callers: ISSUING_CALLERS,
  scope: "supervise",
  http: { kind: SERVICE_MAINTENANCE, operation: name },
  errors: ["permission-denied", "failed-precondition", "resource-exhausted"],
  example: {
    ...exampleEnvelope(SERVICE_MAINTENANCE, name),
    targetInstanceId: EXAMPLE.instanceId,
    principals: [`${EXAMPLE.owner}.manager_goal_${EXAMPLE.instanceId}`],
  },
});
