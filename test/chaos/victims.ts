/** What is interrupted: one barrier of each kind and door, and what must hold of it once its repeat is through. */
import { expect, vi } from "vitest";
import { freeze } from "../../services/auth/barrier/freeze.ts";
import type { KindName, Moment } from "../../services/auth/barrier/kinds.ts";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { instanceRetire } from "../../shared/contracts/auth/assignments/instance-retire.ts";
import { supervisorEnd } from "../../shared/contracts/auth/assignments/supervisor-end.ts";
import { managerMaintainReconcile } from "../../shared/contracts/auth/maintain/reconcile.ts";
import { managerRegister } from "../../shared/contracts/auth/manager/register.ts";
import { agentRetire } from "../../shared/contracts/auth/retirement/agent-retire.ts";
import type { Input } from "../../shared/contracts/operation.ts";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import { IDENTITIES, instanceEndOpId } from "../../shared/credentials/roles.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import { assignmentRows } from "../../shared/rows/assignment.ts";
import { credRows, epCredRows } from "../../shared/rows/credential.ts";
import type { Entry, Key } from "../../shared/rows/family.ts";
import { type EpGate, type Gate, gateRows } from "../../shared/rows/gate.ts";
import { managerRows } from "../../shared/rows/manager.ts";
import type { GrantedBy } from "../../shared/rows/members.ts";
import { obligationRows } from "../../shared/rows/mesh/obligation.ts";
import { serviceSpecRows } from "../../shared/rows/service.ts";
import { type Stage, stageRows } from "../../shared/rows/stage.ts";
import { create, fenced, type Message } from "../../shared/store/message.ts";
import { Actor, Digest, EnvelopeId, Owner, Scope, type Uid } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import { ManagerContract } from "../kit/manager-contract.ts";
import { freshCredentialId, rootCred, serveCred } from "../kit/rows.ts";
import type { TestSpace } from "../kit/space.ts";
import { type Instance, instance } from "../services/auth/assignments/instances.ts";
import { credentialStates, freshOwner, lifecycle, named, requestId, rowsOf } from "../services/auth/lifecycles.ts";
import { gateKeyOf, MANAGER, stored } from "../services/auth/scene.ts";
import type { Death } from "./auth.ts";
import { actor, leftBehind, refused } from "./scene.ts";
import { PATIENCE } from "./space.ts";

/** What the callout may still admit need not be waited for. */
const LOCAL = Owner.parse("local");
const PATIENT = { deadlineMs: 30_000, once: true };
export const CONTRACT = new ManagerContract().registered;

/** A barrier that a process is to die in. */
export interface Victim {
  readonly what: string;
  readonly death: Death;
  /** Also the repeat. */
  ask(): Promise<unknown>;
  /** Brings it to its end once another replica serves, and remembers what it was like when that began. */
  finish(): Promise<void>;
  /** Asked once more, it answers so and writes nothing. */
  again(): Promise<void>;
  /** It happened once, and its rows are as they must be. */
  check(): Promise<void>;
  /** What a predecessor may still have under way: its next step, and a mint from before. */
  late(plane: Entry<unknown>): Promise<Message[][]>;
}

export type Makes = (space: TestSpace, step: Moment) => Promise<Victim>;

/** Every kind, by every door, with its moments. */
export const KINDS: readonly { readonly makes: Makes; readonly kind: KindName; readonly steps: readonly Moment[] }[] = [
  {
    makes: person,
    kind: "retirement",
    steps: ["freeze", "touch", "revoke", "contain", "evict", "drain", "frontier", "finish"],
  },
  {
    makes: agent,
    kind: "retirement",
    steps: ["freeze", "touch", "revoke", "contain", "evict", "drain", "frontier", "finish"],
  },
  { makes: retiredInstance, kind: "instance-end", steps: ["freeze", "revoke", "contain", "finish", "evict"] },
  { makes: endedSupervisor, kind: "instance-end", steps: ["freeze", "revoke", "contain", "finish", "evict"] },
  { makes: repair, kind: "repair", steps: ["revoke", "contain", "evict", "finish"] },
  { makes: registration, kind: "registration", steps: ["freeze", "revoke", "contain", "evict", "finish"] },
];

/** Somebody who granted to a manager, which holds more rows than one commit revokes, with a request undecided. */
async function person(space: TestSpace, step: Moment): Promise<Victim> {
  const who = await lifecycle(space, { owner: LOCAL, kind: "interactive" });
  const { owner, uid } = who;
  const grantedBy = { kind: "actor" as const, owner, actor: who.actor, lifecycleUid: uid };
  const of = await instance(space, owner, {}, grantedBy);
  if (step === "revoke") await crowd(space, of, grantedBy);
  const asker = { endpoint: MANAGER, owner, actor: Actor.parse("cli"), uid: newUid(systemPorts) };
  const obligation = obligationRows.key({ target: uid, ...asker, id: EnvelopeId.parse("request-1") });
  await space.put(obligation, {
    state: "provisional",
    opId: "request-1",
    decision: "epf",
    fingerprint: Digest.parse(`sha256:${"f".repeat(64)}`),
    sourceSeq: 1,
    route: "effects",
    mappingRevision: 1,
  });
  const victim = await retiring(space, step, who, () => space.operator.call(actorRevoke, named(who), PATIENT));
  return {
    ...victim,
    what: `a person's retirement, ${step}`,
    async again() {
      await victim.again();
      await refused("permission-denied", () => register(space, of)); // what it granted has gone with it
    },
    async check() {
      await victim.check();
      expect(new Set(await credentialStates(space, of)), step).toEqual(new Set(["revoked"]));
      expect(await stored(space, gateKeyOf(of)), step).toMatchObject({ state: "open", generation: 1 });
      expect(await stored(space, obligation), step).toMatchObject({ state: "rejected" });
    },
  };
}

async function agent(space: TestSpace, step: Moment): Promise<Victim> {
  const who = await lifecycle(space, { owner: LOCAL });
  const victim = await retiring(space, step, who, () => space.operator.call(agentRetire, named(who), PATIENT));
  return { ...victim, what: `an agent's retirement, ${step}` };
}

async function retiring(
  space: TestSpace,
  step: Moment,
  who: Awaited<ReturnType<typeof lifecycle>>,
  ask: () => Promise<unknown>,
): Promise<Victim> {
  const { uid, opId } = who;
  const open = await entry(space, gateRows.key({ uid }));
  const left = await leftBehind(space, who);
  const credentialId = freshCredentialId();
  return {
    what: `a retirement, ${step}`,
    death: { kind: "retirement", step, opId },
    ask,
    async finish() {
      // Once it is frozen, nobody has to ask again.
      if ((await stored(space, gateRows.key({ uid }))).state === "open") await ask();
      await vi.waitFor(async () => expect((await rowsOf(space, who)).head?.state, step).toBe("retired"), PATIENCE);
    },
    again: async () => expect(await ask(), step).toMatchObject({ retired: true }),
    async check() {
      const rows = await rowsOf(space, who);
      expect(rows, step).toMatchObject({
        gate: { state: "retired", generation: 1, op: { opId } },
        actor: { state: "revoked" },
        stage: { phase: "finished" },
        frontier: { value: { opId } },
      });
      expect(await credentialStates(space, { uid }), step).toEqual(["revoked"]);
      expect(left.isClosed(), `${step}: its connection`).toBe(true);
    },
    late: async (plane) => [
      [await another(space, opId, plane)],
      [fenced(credRows.key({ uid, credentialId }), rootCred(uid, { credentialId }), open)],
    ],
  };
}

async function retiredInstance(space: TestSpace, step: Moment): Promise<Victim> {
  const of = await managed(space);
  if (step === "revoke") await crowd(space, of);
  const { instanceId } = of;
  return ending(space, step, of, "an instance's end", () =>
    space.operator.call(instanceRetire, { requestId: requestId(), endpoint: MANAGER, instanceId }, PATIENT),
  );
}

async function endedSupervisor(space: TestSpace, step: Moment): Promise<Victim> {
  const owner = freshOwner();
  const of = await instance(space, owner);
  const { instanceId } = of;
  await space.put(assignmentRows.key({ instanceId }), {
    v: 1,
    kind: "platform-supervisor",
    owner: owner as never,
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
    finish: async () => {
      expect(await ask(), step).toMatchObject({ opId, retired: true, evictionVerified: true });
    },
    again: async () => expect(await ask(), step).toMatchObject({ opId, retired: true }),
    async check() {
      expect(await stored(space, gateKeyOf(of)), step).toMatchObject({ state: "retired", op: { opId }, generation: 1 });
      expect(await stored(space, stageRows.key({ opId })), step).toMatchObject({ phase: "finished" });
      expect(new Set(await credentialStates(space, { instanceId })), step).toEqual(new Set(["revoked"]));
      expect(left.isClosed(), `${step}: its connection`).toBe(true);
    },
  };
}

async function repair(space: TestSpace, step: Moment): Promise<Victim> {
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
        expect(await ask(), step).toMatchObject({ reconciliation: { opId, reopenedAtGeneration: 2 } });
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
async function registration(space: TestSpace, step: Moment): Promise<Victim> {
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
      expect(await ask(), step).toMatchObject(moved);
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

/** What a process that stands within a barrier of an instance may still send. */
async function gateFenced(space: TestSpace, of: Instance, opId: () => Uid | undefined): Promise<Pick<Victim, "late">> {
  const key = gateKeyOf(of);
  const gate = await entry(space, key);
  const credentialId = freshCredentialId();
  const mint = epCredRows.key({ endpoint: MANAGER, instanceId: of.instanceId, credentialId });
  return {
    late: async () => {
      const id = opId();
      return [
        [fenced(mint, serveCred(of.instanceId, { credentialId }), gate)],
        ...(id === undefined ? [] : [[await another(space, id, gate)]]),
      ];
    },
  };
}

/** The stage once more under a fence that has moved. */
async function another(space: TestSpace, opId: Uid, fence: Entry<unknown>): Promise<Message> {
  const key = stageRows.key({ opId });
  const stage: Stage = await stored(space, key);
  return fenced(key, { ...stage, phase: "drained" }, fence);
}

async function entry<V extends Gate | EpGate>({ store }: TestSpace, key: Key<V>): Promise<Entry<V>> {
  const found = await store.read(key);
  if (!found) throw new Error(`no row ${key.key}`);
  return found;
}

/** An instance on behalf of somebody who may still supervise. */
async function managed(space: TestSpace): Promise<Instance> {
  const scope = [Scope.parse("supervise")];
  const { owner, actor: name, uid } = await lifecycle(space, { owner: LOCAL, kind: "interactive", scope });
  return instance(space, owner, {}, { kind: "actor", owner, actor: name, lifecycleUid: uid });
}

/** More rows of the serve family than one commit revokes, unless said otherwise. */
async function crowd(
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

async function register(space: TestSpace, of: Instance) {
  const { client, row } = await asManager(space, of);
  const { instanceId } = of;
  const { managerLifecycleUid } = row;
  return client.call(managerRegister, { v: 1, requestId: requestId(), instanceId, managerLifecycleUid }, PATIENT);
}

async function reconcile(space: TestSpace, of: Instance) {
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
