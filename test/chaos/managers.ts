/** Managers of somebody who may supervise, and what they ask for. */
import { managerMaintainReconcile } from "../../shared/contracts/auth/maintain/reconcile.ts";
import { managerRegister } from "../../shared/contracts/auth/manager/register.ts";
import type { Input } from "../../shared/contracts/operation.ts";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import { IDENTITIES } from "../../shared/credentials/roles.ts";
import { systemPorts } from "../../shared/ports.ts";
import { epCredRows } from "../../shared/rows/credential.ts";
import { managerRows } from "../../shared/rows/manager.ts";
import type { GrantedBy } from "../../shared/rows/members.ts";
import { create, type Message } from "../../shared/store/message.ts";
import { Actor, Owner, Scope } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import { ManagerContract } from "../kit/manager-contract.ts";
import { serveCred } from "../kit/rows.ts";
import type { TestSpace } from "../kit/space.ts";
import { type Instance, instance } from "../services/auth/assignments/instances.ts";
import { lifecycle, requestId } from "../services/auth/lifecycles.ts";
import { MANAGER, stored } from "../services/auth/scene.ts";

/** What the callout may still admit need not be waited for. */
export const LOCAL = Owner.parse("local");
export const PATIENT = { deadlineMs: 30_000, once: true };
export const CONTRACT = new ManagerContract().registered;

/** An instance on behalf of somebody who may still supervise. */
export async function managed(space: TestSpace): Promise<Instance> {
  const scope = [Scope.parse("supervise")];
  const { owner, actor: name, uid } = await lifecycle(space, { owner: LOCAL, kind: "interactive", scope });
  return instance(space, owner, {}, { kind: "actor", owner, actor: name, lifecycleUid: uid });
}

/** More rows of the serve family than one commit revokes, unless said otherwise. */
export async function crowd(
  { store }: TestSpace,
  { instanceId, principal }: Instance,
  grantedBy?: GrantedBy,
  count = 251,
): Promise<void> {
  const granted = grantedBy ? { grantedBy } : {};
  const rows = Array.from({ length: count }, (): Message => {
    const row = serveCred(instanceId, { ...granted, role: "serve", holderPrincipal: principal });
    return create(epCredRows.key({ endpoint: MANAGER, instanceId, credentialId: row.credentialId }), row);
  });
  await store.commit(rows, ownWork(systemPorts, 10_000));
}

async function asManager(space: TestSpace, { instanceId }: Instance) {
  const row = await stored(space, managerRows.key({ instanceId }));
  const caller = { owner: LOCAL, actor: Actor.parse(`manager_${instanceId}`), uid: row.managerLifecycleUid };
  return { client: space.clientAs(caller), row };
}

export async function register(space: TestSpace, of: Instance) {
  const { client, row } = await asManager(space, of);
  const { instanceId } = of;
  const { managerLifecycleUid } = row;
  return client.call(managerRegister, { v: 1, requestId: requestId(), instanceId, managerLifecycleUid }, PATIENT);
}

export async function reconcile(space: TestSpace, of: Instance) {
  const { client, row } = await asManager(space, of);
  const { grantedBy, managerLifecycleUid } = row;
  if (grantedBy.kind !== "actor") throw new Error("no person behind it");
  const identities = Object.fromEntries(IDENTITIES.map((name) => [name, { id: createKeyPair("user").public }]));
  return client.call(
    managerMaintainReconcile,
    {
      v: 1,
      kind: "manager-service-maintenance",
      operation: "reconcile-registration",
      space: space.space,
      actor: grantedBy.actor,
      instanceId: of.instanceId,
      managerLifecycleUid,
      requestId: requestId(),
      identities: identities as Input<typeof managerMaintainReconcile>["identities"],
      targetInstanceId: of.instanceId,
    },
    PATIENT,
  );
}
