import { PersonOwner, RequestId, Uid } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { ended } from "./ended.ts";

export const supervisorEnd = operation({
  service: "auth",
  name: "supervisor-end",
  summary: "Ends an instance whose platform supervisor's assignment has ended",
  effect: "write",
  input: Closed({ requestId: RequestId.schema, owner: PersonOwner.schema, instanceId: Uid.schema }),
  output: Closed({ ...ended, owner: PersonOwner.schema }),
  callers: ["operator"],
  errors: ["not-found", "permission-denied", "failed-precondition", "conflict", "unavailable"],
  example: { requestId: EXAMPLE.requestId, owner: EXAMPLE.owner, instanceId: EXAMPLE.instanceId },
});
