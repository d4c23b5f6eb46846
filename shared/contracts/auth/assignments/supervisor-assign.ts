import { PersonOwner, RequestId } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Millis } from "../../shapes.ts";
import { assigning, SupervisorAssignment, SupervisorState } from "./assignment.ts";

export const supervisorAssign = operation({
  service: "auth",
  name: "supervisor-assign",
  summary: "Assigns a person's instance to a platform supervisor for a time, or ends that for good",
  effect: "write",
  input: Closed({ ...assigning, owner: PersonOwner.schema, state: SupervisorState, expiresAt: Millis }),
  output: Closed({ requestId: RequestId.schema, assignment: SupervisorAssignment }),
  callers: ["operator"],
  errors: ["conflict"],
  example: {
    requestId: EXAMPLE.requestId,
    owner: EXAMPLE.owner,
    instanceId: EXAMPLE.instanceId,
    lifecycleUid: EXAMPLE.managerLifecycleUid,
    state: "assigned",
    expiresAt: 1_767_225_600_000,
    expectedRevision: 0,
  },
});
