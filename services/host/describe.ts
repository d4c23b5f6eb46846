/** `describe`: what this incarnation serves, the same for everybody, read from no store (wire §7). */
import type { ContractSet, ServiceName } from "../../shared/contracts/operation.ts";
import type { Incarnation } from "./road.ts";

export function descriptor(service: ServiceName, incarnation: Incarnation, contracts: ContractSet) {
  return {
    v: 1 as const,
    public: true as const,
    descriptor: {
      endpoint: service,
      owner: "local" as const,
      instanceId: incarnation.instanceId,
      epoch: incarnation.epoch,
      registrationRevision: incarnation.registrationRevision,
      protocol: { v: 2 as const },
      clusterDigests: [contracts.clusterDigest],
      clusters: [contracts.cluster],
      commands: [...contracts.pairs].map(([name, pair]) => ({ name, ...pair })),
    },
  };
}
