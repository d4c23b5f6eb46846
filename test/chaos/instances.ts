/** Ends, repairs and registrations of a manager's instance that a process is to die in. */
import { expect } from "vitest";
import { freeze } from "../../services/auth/barrier/freeze.ts";
import type { Moment } from "../../services/auth/barrier/kinds.ts";
import { instanceRetire } from "../../shared/contracts/auth/assignments/instance-retire.ts";
import { supervisorEnd } from "../../shared/contracts/auth/assignments/supervisor-end.ts";
import { instanceEndOpId } from "../../shared/credentials/roles.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import { assignmentRows } from "../../shared/rows/assignment.ts";
import type { EpGate } from "../../shared/rows/gate.ts";
import { serviceSpecRows } from "../../shared/rows/service.ts";
import { stageRows } from "../../shared/rows/stage.ts";
import { PersonOwner, type Uid } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import type { TestSpace } from "../kit/space.ts";
import { type Instance, instance } from "../services/auth/assignments/instances.ts";
import { credentialStates, freshOwner, requestId } from "../services/auth/lifecycles.ts";
import { gateKeyOf, MANAGER, stored } from "../services/auth/scene.ts";
import { entry, gateFenced } from "./late.ts";
import { CONTRACT, crowd, LOCAL, managed, PATIENT, reconcile, register } from "./managers.ts";
import { actor, confirmed, leftBehind, refused } from "./scene.ts";
import type { Victim } from "./victims.ts";

export async function retiredInstance(space: TestSpace, step: Moment): Promise<Victim> {
  const of = await managed(space);
  if (step === "revoke") await crowd(space, of);
  const { instanceId } = of;
  return ending(space, step, of, "an instance's end", () =>
    space.operator.call(instanceRetire, { requestId: requestId(), endpoint: MANAGER, instanceId }, PATIENT),
  );
}

export async function endedSupervisor(space: TestSpace, step: Moment): Promise<Victim> {
  const owner = freshOwner();
  const of = await instance(space, owner);
  const { instanceId } = of;
  await space.put(assignmentRows.key({ instanceId }), {
    v: 1,
    kind: "platform-supervisor",
    owner: PersonOwner.parse(owner),
    space: space.space,
    accountPublicKey: await space.dataAccount(),
    instanceId,
    lifecycleUid: newUid(systemPorts),
    assignmentRevision: 2,
    scope: ["supervise"],
    expiresAt: systemPorts.now() + 600_000,
    state: "ended",
  });
  return ending(space, step, of, "a supervisor's end", () =>
    space.operator.call(supervisorEnd, { requestId: requestId(), owner, instanceId }, PATIENT),
  );
}

async function ending(
  space: TestSpace,
  step: Moment,
  of: Instance,
  what: string,
  ask: () => Promise<unknown>,
): Promise<Victim> {
  const { instanceId } = of;
  const opId = instanceEndOpId(instanceId);
  const left = await leftBehind(space, actor(of.principal));
  return {
    ...(await gateFenced(space, of, () => opId)),
    what: `${what}, ${step}`,
    death: { kind: "instance-end", step, opId },
    ask,
    finish: () => confirmed(ask, step, { opId, retired: true, evictionVerified: true }),
    again: async () => expect(await ask(), step).toMatchObject({ opId, retired: true }),
    async check() {
      expect(await stored(space, gateKeyOf(of)), step).toMatchObject({ state: "retired", op: { opId }, generation: 1 });
      expect(await stored(space, stageRows.key({ opId })), step).toMatchObject({ phase: "finished" });
      expect(new Set(await credentialStates(space, { instanceId })), step).toEqual(new Set(["revoked"]));
      expect(left.isClosed(), `${step}: its connection`).toBe(true);
    },
  };
}

export async function repair(space: TestSpace, step: Moment): Promise<Victim> {
  const of = await managed(space);
  const opId = await leftFrozen(space, of);
  if (step === "revoke") await crowd(space, of);
  const ask = () => reconcile(space, of);
  return {
    ...(await gateFenced(space, of, () => opId)),
    what: `a repair, ${step}`,
    death: { kind: "repair", step, opId },
    ask,
    async finish() {
      if ((await stored(space, gateKeyOf(of))).state === "frozen")
        await confirmed(ask, step, { reconciliation: { opId, reopenedAtGeneration: 2 } });
    },
    again: () => refused("failed-precondition", ask),
    async check() {
      const gate = await stored(space, gateKeyOf(of));
      expect(gate, step).toMatchObject({ state: "open", generation: 2, processEpoch: 0, registrationRevision: 1 });
      expect(await stored(space, stageRows.key({ opId })), step).toMatchObject({ phase: "aborted" });
    },
  };
}

/** Freezes the instance's gate as a registrar that dies then. */
async function leftFrozen(space: TestSpace, of: Instance): Promise<Uid> {
  const opId = newUid(systemPorts);
  const op = { opId, kind: "registration" as const };
  const context = { store: space.store, ports: systemPorts, startedBy: "test" };
  await freeze(context, await entry(space, gateKeyOf(of)), op, of.principal, [], ownWork(systemPorts, 10_000));
  return opId;
}

/** The operation id is drawn at the freeze: which of several stands where is known only then. */
export async function registration(space: TestSpace, step: Moment): Promise<Victim> {
  const of = await managed(space);
  const { instanceId } = of;
  await crowd(space, of, undefined, 2);
  const spec = {
    endpoint: MANAGER,
    owner: LOCAL,
    clusterDigests: [CONTRACT.clusterDigest],
    protocol: { v: 2 as const },
  };
  await space.put(serviceSpecRows.key({ endpoint: MANAGER, instanceId }), spec);
  let found: EpGate | undefined;
  const ask = () => register(space, of);
  return {
    ...(await gateFenced(space, of, () => found?.op?.opId as Uid | undefined)),
    what: `a registration, ${step}`,
    death: { kind: "registration", step },
    ask,
    async finish() {
      found = await stored(space, gateKeyOf(of));
      // Frozen or not, this call's is the next epoch, under the operation that it met.
      const moved = { processEpoch: found.processEpoch + 1, generation: found.generation + 1 };
      await confirmed(ask, step, moved);
    },
    again: async () => {}, // another call is another registration
    async check() {
      const gate = await stored(space, gateKeyOf(of));
      expect(gate).toMatchObject({ state: "open", processEpoch: (found?.processEpoch ?? 0) + 1 });
      if (found?.op)
        expect(await stored(space, stageRows.key({ opId: found.op.opId as Uid }))).toMatchObject({ phase: "finished" });
      expect(await credentialStates(space, of)).toContain("revoked");
    },
  };
}
