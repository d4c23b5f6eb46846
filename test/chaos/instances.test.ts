/** A replica dies after each step of the barriers that an instance's own gate fences; whoever is asked next goes on. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KindName, Moment } from "../../services/auth/barrier/kinds.ts";
import { instanceRetire } from "../../shared/contracts/auth/assignments/instance-retire.ts";
import { managerMaintainReconcile } from "../../shared/contracts/auth/maintain/reconcile.ts";
import { managerRegister } from "../../shared/contracts/auth/manager/register.ts";
import type { Input } from "../../shared/contracts/operation.ts";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import { IDENTITIES, instanceEndOpId } from "../../shared/credentials/roles.ts";
import { actorRows } from "../../shared/rows/actor.ts";
import { artifactRows } from "../../shared/rows/artifact.ts";
import { managerRows } from "../../shared/rows/manager.ts";
import { serviceSpecRows } from "../../shared/rows/service.ts";
import { stageRows } from "../../shared/rows/stage.ts";
import { Actor, Owner, Scope, type Uid } from "../../shared/tokens.ts";
import { ManagerContract } from "../kit/manager-contract.ts";
import type { TestSpace } from "../kit/space.ts";
import { freezeByRegistration, type Instance, instance } from "../services/auth/assignments/instances.ts";
import { credentialStates, lifecycle, requestId } from "../services/auth/lifecycles.ts";
import { gateKeyOf, MANAGER, stored } from "../services/auth/scene.ts";
import type { Death } from "./auth.ts";
import { violations } from "./invariants.ts";
import { Replica } from "./replica.ts";
import { ROUNDS, startChaos } from "./space.ts";

/** What the callout may still admit need not be waited for. */
const LOCAL = Owner.parse("local");
const CONTRACT = new ManagerContract().registered;
const PATIENT = { deadlineMs: 30_000, once: true };

let space: TestSpace;
const replicas: Replica[] = [];
beforeAll(async () => {
  space = await startChaos();
  for (const { digest, text } of CONTRACT.artifacts) await space.put(artifactRows.key(digest), JSON.parse(text));
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.kill()));
  await space.stop();
});

async function serving(slot: string, dies: readonly Death[] = []): Promise<Replica> {
  const replica = await Replica.serving(space, slot, { dies });
  replicas.push(replica);
  return replica;
}

interface Case extends Instance {
  readonly step: Moment;
  readonly opId: Uid;
}

/** An instance whose manager may ask on its own connection. */
async function manager(): Promise<Instance> {
  const person = await lifecycle(space, { owner: LOCAL, kind: "interactive" });
  const { owner, actor, uid: lifecycleUid } = person;
  const row = await stored(space, actorRows.key({ owner, actor }));
  await space.put(actorRows.key({ owner, actor }), { ...row, scope: [Scope.parse("supervise")] });
  return instance(space, owner, {}, { kind: "actor", owner, actor, lifecycleUid });
}

async function asManager({ instanceId }: Instance) {
  const row = await stored(space, managerRows.key({ instanceId }));
  const caller = { owner: LOCAL, actor: Actor.parse(`manager_${instanceId}`), uid: row.managerLifecycleUid };
  return { client: space.clientAs(caller), row };
}

const end = ({ instanceId }: Instance) =>
  space.operator.call(instanceRetire, { requestId: requestId(), endpoint: MANAGER, instanceId }, PATIENT);

async function reconcile(of: Instance) {
  const { client, row } = await asManager(of);
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

async function register(of: Instance) {
  const { client, row } = await asManager(of);
  const { instanceId } = of;
  const { managerLifecycleUid } = row;
  return client.call(managerRegister, { v: 1, requestId: requestId(), instanceId, managerLifecycleUid }, PATIENT);
}

/** Whoever is asked dies with all of them at their steps; the repeat of each is asked of the next. */
async function interrupted<C extends Instance>(
  kind: KindName,
  cases: readonly C[],
  death: (of: C, at: number) => Omit<Death, "kind">,
  ask: (of: C) => Promise<unknown>,
): Promise<Replica> {
  const first = await serving(
    "1",
    cases.map((of, at) => ({ kind, ...death(of, at), serving: true as const })),
  );
  const asked = cases.map((of) => ask(of).catch(() => {}));
  await first.died();
  void asked;
  return serving("2");
}

describe.each(Array.from({ length: ROUNDS }, (_, round) => round + 1))("round %i", { timeout: 120_000 }, () => {
  it("the end of an instance is finished by its repeat", async () => {
    const steps: readonly Moment[] = ["freeze", "revoke", "contain", "finish", "evict"];
    const cases = await Promise.all(
      steps.map(async (step): Promise<Case> => {
        const of = await instance(space, LOCAL);
        return { ...of, step, opId: instanceEndOpId(of.instanceId) };
      }),
    );
    const next = await interrupted("instance-end", cases, ({ step, opId }) => ({ step, opId }), end);
    for (const of of cases) {
      const { instanceId, opId, step } = of;
      expect(await end(of), step).toMatchObject({ opId, retired: true, revokedRows: 3, evictionVerified: true });
      expect(await stored(space, gateKeyOf(of)), step).toMatchObject({ state: "retired", op: { opId }, generation: 1 });
      expect(await stored(space, stageRows.key({ opId })), step).toMatchObject({ phase: "finished" });
      expect(await credentialStates(space, { instanceId }), step).toEqual(["revoked", "revoked", "revoked"]);
    }
    expect(await violations(space.store)).toEqual([]);
    await next.stop();
  });

  it("a repair proves everybody gone anew, and opens the gate once", async () => {
    const steps: readonly Moment[] = ["revoke", "contain", "evict", "finish"];
    const cases = await Promise.all(
      steps.map(async (step): Promise<Case> => {
        const of = await manager();
        return { ...of, step, opId: await freezeByRegistration(space, of) };
      }),
    );
    const next = await interrupted("repair", cases, ({ step, opId }) => ({ step, opId }), reconcile);
    for (const of of cases) {
      const { opId, step } = of;
      const repeat = await reconcile(of).catch((error: unknown) => error);
      if (step === "finish") expect(repeat).toMatchObject({ code: "failed-precondition" });
      else
        expect(repeat, step).toMatchObject({
          reconciliation: { opId, reopenedAtGeneration: 2, holders: [of.principal] },
        });
      const gate = await stored(space, gateKeyOf(of));
      expect(gate, step).toMatchObject({ state: "open", generation: 2, processEpoch: 0, registrationRevision: 1 });
      expect(await stored(space, stageRows.key({ opId })), step).toMatchObject({ phase: "aborted" });
    }
    expect(await violations(space.store)).toEqual([]);
    await next.stop();
  });

  it("a manager's registration resumes its own operation, and its epoch moves once for it", async () => {
    const steps: readonly Moment[] = ["freeze", "revoke", "contain", "evict", "finish"];
    const made = await Promise.all(
      steps.map(async () => {
        const of = await manager();
        const spec = {
          endpoint: MANAGER,
          owner: LOCAL,
          clusterDigests: [CONTRACT.clusterDigest],
          protocol: { v: 2 as const },
        };
        await space.put(serviceSpecRows.key({ endpoint: MANAGER, instanceId: of.instanceId }), spec);
        return of;
      }),
    );
    // Which of them stands where is only known once they do: an operation id is drawn at the freeze.
    const next = await interrupted("registration", made, (_of, at) => ({ step: steps[at] ?? "freeze" }), register);
    const left = await Promise.all(made.map(async (of) => ({ of, gate: await stored(space, gateKeyOf(of)) })));
    expect(left.filter(({ gate }) => gate.state === "frozen")).toHaveLength(steps.length - 1);
    for (const { of, gate } of left) {
      const moves = gate.state === "frozen" ? 1 : 2;
      expect(await register(of)).toMatchObject({ processEpoch: moves, generation: 1 + moves });
      if (gate.op)
        expect(await stored(space, stageRows.key({ opId: gate.op.opId }))).toMatchObject({ phase: "finished" });
    }
    expect(await violations(space.store)).toEqual([]);
    await next.stop();
  });

  it("`auth` itself registers under the operation that its former start left", async () => {
    const slot = "own";
    await (await serving(slot)).kill();
    const steps: readonly Moment[] = ["freeze", "revoke", "contain", "evict", "finish"];
    for (const step of ROUNDS > 1 ? steps : (["contain"] as const)) {
      const dying = Replica.spawn(space, slot, { dies: [{ kind: "registration", step }] });
      replicas.push(dying);
      await dying.died();
      expect(await violations(space.store)).toEqual([]);
    }
    const last = await serving(slot);
    expect(await violations(space.store)).toEqual([]);
    await last.stop();
  });
});
