/** Looks at the registration of an instance of `auth`: its gate, its rows, its records. */
import { authServeActor } from "../../../../shared/credentials/roles.ts";
import { systemPorts } from "../../../../shared/ports.ts";
import { type EpCred, epCredRows } from "../../../../shared/rows/credential.ts";
import { type EpGate, epGateRows } from "../../../../shared/rows/gate.ts";
import { serviceSpecRows, serviceStatusRows } from "../../../../shared/rows/service.ts";
import type { Stage } from "../../../../shared/rows/stage.ts";
import { stageRows } from "../../../../shared/rows/stage.ts";
import { EndpointLabel, Owner, principalOf, type Uid } from "../../../../shared/tokens.ts";
import { discover } from "../../../kit/micro.ts";
import type { TestSpace } from "../../../kit/space.ts";
import { stored } from "../scene.ts";

export const AUTH = EndpointLabel.parse("auth");

export interface Registered {
  readonly instanceId: Uid;
  readonly keys: ReturnType<typeof keysOf>;
  gate(): Promise<EpGate>;
  rows(): Promise<EpCred[]>;
  stage(opId: Uid): Promise<Stage>;
  /** What the one that serves says of itself. */
  metadata(): Promise<Record<string, string>>;
}

const keysOf = (instanceId: Uid) => {
  const parts = { endpoint: AUTH, instanceId };
  return { gate: epGateRows.key(parts), spec: serviceSpecRows.key(parts), status: serviceStatusRows.key(parts) };
};

export const servePrincipal = (instanceId: Uid) => principalOf(Owner.parse("local"), authServeActor(instanceId));

export async function registeredIn(space: TestSpace, slot = "1"): Promise<Registered> {
  const instanceId = await space.files.instanceId(slot, systemPorts);
  const keys = keysOf(instanceId);
  return {
    instanceId,
    keys,
    gate: () => stored(space, keys.gate),
    async rows() {
      const { entries } = await space.store.scan(epCredRows, { endpoint: AUTH, instanceId });
      return entries.map(({ value }) => value);
    },
    stage: (opId) => stored(space, stageRows.key({ opId })),
    async metadata() {
      const { metadata } = await discover(space.roots.space, "INFO", "auth");
      return metadata;
    },
  };
}
