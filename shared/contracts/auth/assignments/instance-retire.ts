import { EndpointLabel, RequestId, Uid } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { ended } from "./ended.ts";

export const instanceRetire = operation({
  service: "auth",
  name: "instance-retire",
  summary: "Ends an instance that is lost or given up",
  effect: "write",
  input: Closed({ requestId: RequestId.schema, endpoint: EndpointLabel.schema, instanceId: Uid.schema }),
  output: Closed({ ...ended, endpoint: EndpointLabel.schema }),
  callers: ["operator"],
  errors: ["not-found", "conflict", "unavailable"],
  example: { requestId: EXAMPLE.requestId, endpoint: "manager", instanceId: EXAMPLE.instanceId },
});
