/** The contract of the example manager: the commands of a run, with the smallest schemas that say something. */

import { digestOf } from "../../../shared/canonical.ts";
import type { ClusterDocument } from "../../../shared/contracts/operation.ts";

const RunRequest = {
  type: "object",
  properties: { runId: { type: "string", pattern: "^run-[0-9a-f]{32}$", maxLength: 36 } },
  required: ["runId"],
  additionalProperties: false,
};
const Void = { type: "null" };

const command = (name: string): ClusterDocument["commands"][number] => ({
  name,
  input: { $ref: digestOf(RunRequest) },
  output: { $ref: digestOf(Void) },
  class: "ephemeral",
  targeted: false,
  modes: [],
  capability: `manager.${name}`,
  effect: "write",
  traits: [],
});

const cluster: ClusterDocument = {
  urn: "ai.cotal.manager",
  revision: 1,
  attributes: [],
  commands: [command("run-start"), command("run-resume")],
  events: [],
};

/** As they are sent to `manager-activate`, in any order. */
export const CONTRACT_ARTIFACTS = [cluster, RunRequest, Void];
