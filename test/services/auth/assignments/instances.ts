/** Manager instances that are to end, written row by row. */
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { epCredRows } from "../../../../shared/rows/credential.ts";
import { type EpGate, epGateRows } from "../../../../shared/rows/gate.ts";
import { byManagerRows, managerRows } from "../../../../shared/rows/manager.ts";
import type { GrantedBy } from "../../../../shared/rows/members.ts";
import { type Stage, stageRows } from "../../../../shared/rows/stage.ts";
import { Actor, type Owner, type Principal, principalOf, type Uid } from "../../../../shared/tokens.ts";
import { serveCred } from "../../../kit/rows.ts";
import type { TestSpace } from "../../../kit/space.ts";
import { MANAGER } from "../scene.ts";

export interface Instance {
  readonly instanceId: Uid;
  readonly principal: Principal;
  /** Who holds its credentials, a person's hand on a run left out. */
  readonly holders: readonly Principal[];
}

/** With an executor, a server and a person's hand on a run; on whose behalf, if anybody's. */
export async function instance(
  space: TestSpace,
  owner: Owner,
  gate: Partial<EpGate> = {},
  grantedBy?: GrantedBy,
): Promise<Instance> {
  const instanceId = newUid(systemPorts);
  const named = (actor: string) => principalOf(owner, Actor.parse(actor));
  const principal = named(`manager_serve_${instanceId}`);
  await space.put(epGateRows.key({ endpoint: MANAGER, instanceId }), {
    state: "open",
    generation: 1,
    processEpoch: 0,
    registrationRevision: 1,
    nameAuthorityRevision: 0,
    principal,
    ...gate,
  });
  if (grantedBy) {
    const managerLifecycleUid = newUid(systemPorts);
    await space.put(managerRows.key({ instanceId }), { v: 1, instanceId, owner, managerLifecycleUid, grantedBy });
    await space.put(byManagerRows.key({ owner, instanceId }), {});
  }
  const granted = grantedBy ? { grantedBy } : {};
  const executor = serveCred(instanceId, { ...granted, holderPrincipal: named(`manager_exec_${instanceId}`) });
  const server = serveCred(instanceId, { ...granted, role: "serve", holderPrincipal: principal });
  const hand = serveCred(instanceId, { ...granted, role: "runOperator", holderPrincipal: named("cli") });
  for (const value of [executor, server, hand]) {
    const { credentialId } = value;
    await space.put(epCredRows.key({ endpoint: MANAGER, instanceId, credentialId }), value);
  }
  return { instanceId, principal, holders: [executor.holderPrincipal, principal].sort() };
}

/** Freezes the instance's gate by a registration, as its registrar leaves it when it dies. */
export async function freezeByRegistration(space: TestSpace, { instanceId, principal }: Instance): Promise<Uid> {
  const key = epGateRows.key({ endpoint: MANAGER, instanceId });
  const opId = newUid(systemPorts);
  const stage: Stage = {
    v: 1,
    opId,
    kind: "registration",
    gate: key.key,
    fromGeneration: 1,
    principal,
    evicted: [],
    startedBy: "test",
    at: 1,
    phase: "frozen",
  };
  await space.put(stageRows.key({ opId }), stage);
  const row = await space.store.read(key);
  if (!row) throw new Error("no gate");
  await space.put(key, { ...row.value, state: "frozen", op: { opId, kind: "registration" } });
  return opId;
}
