import Type from "typebox";
import { PlatformOwner, RequestId, Uid } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { assigning, PlatformAssignment, PlatformState } from "./assignment.ts";

export const platformAssign = operation({
  service: "auth",
  name: "platform-assign",
  summary: "Assigns an instance to the platform, or takes the assignment back for good",
  effect: "write",
  input: Closed({
    ...assigning,
    owner: PlatformOwner.schema,
    predecessorInstanceId: Type.Optional(Uid.schema),
    state: PlatformState,
  }),
  output: Closed({ requestId: RequestId.schema, assignment: PlatformAssignment }),
  callers: ["operator"],
  errors: ["conflict", "failed-precondition"],
  example: {
    requestId: EXAMPLE.requestId,
    owner: EXAMPLE.platformOwner,
    instanceId: EXAMPLE.instanceId,
    lifecycleUid: EXAMPLE.managerLifecycleUid,
    state: "assigned",
    expectedRevision: 0,
  },
});
