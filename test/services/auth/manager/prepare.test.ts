import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { managerPrepare } from "../../../../shared/contracts/auth/manager/prepare.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import { MANAGER as LIMITS } from "../../../../shared/limits.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { actorRows } from "../../../../shared/rows/actor.ts";
import { type EpGate, epGateRows } from "../../../../shared/rows/gate.ts";
import { byManagerRows, managerRows } from "../../../../shared/rows/manager.ts";
import { create, touch } from "../../../../shared/store/message.ts";
import { type Principal, UserNkey } from "../../../../shared/tokens.ts";
import { ownWork } from "../../../../shared/work.ts";
import type { TestManager } from "../../../kit/manager.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import type { Person } from "../../../kit/person.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { hears } from "../hear.ts";
import { expectRow, rowOf } from "../issuing.ts";
import { refusesStrangers } from "../manager-refusals.ts";
import { during, frozen, gateKeyOf, MANAGER, retired, stored } from "../scene.ts";

let space: TestSpace;
let alice: Person;
/** Serves; no case does away with it. */
let manager: TestManager;

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange"] });
  alice = await space.person("alice", { scope: ["supervise"] });
  manager = await space.manager(alice);
});
afterAll(() => space.stop());

const args = (of: TestManager): Input<typeof managerPrepare> => ({
  ...of.envelope(),
  kind: "manager-service-authority",
  operation: "prepare",
});
const fresh = (person = alice): Promise<TestManager> => space.manager(person, { upTo: "none" });
const stranger = () => space.person(`somebody-${newUid(systemPorts)}`, { scope: ["supervise"] });
const written = async (before: Awaited<ReturnType<typeof sequences>>): Promise<number> =>
  ((await sequences(space)).auth ?? 0) - (before.auth ?? 0);

refusesStrangers(() => ({ space, person: alice, manager }), managerPrepare, args);

describe("a first preparation", () => {
  it("makes the instance known and gives the supervisor and executor credentials, in one commit", async () => {
    const of = await fresh();
    const before = await sequences(space);
    const request = args(of);
    const answer = await alice.ask(managerPrepare, request);
    const { supervisor, executor } = answer.credentials;
    expect(answer).toEqual({
      v: 1,
      kind: "manager-service-authority",
      operation: "prepare",
      space: "demo",
      owner: alice.owner,
      actor: "cli",
      instanceId: of.instanceId,
      lifecycleUid: of.uid,
      requestId: request.requestId,
      issuedAt: expect.any(Number),
      expiresAt: executor.exp * 1_000,
      actors: {
        supervisor: `manager_${of.instanceId}`,
        executor: `manager_exec_${of.instanceId}`,
        serve: `manager_serve_${of.instanceId}`,
        goalWriter: `manager_goal_${of.instanceId}`,
        sessionLedger: `manager_session_${of.instanceId}`,
      },
      identities: request.identities,
      credentials: { supervisor: expect.anything(), executor: expect.anything() },
    });
    expect([supervisor.exp, executor.exp].map((exp) => exp - Math.floor(answer.issuedAt / 1_000))).toEqual([900, 300]);
    expect(await stored(space, gateKeyOf(of))).toEqual({
      state: "open",
      generation: 0,
      processEpoch: 0,
      registrationRevision: 0,
      nameAuthorityRevision: 0,
      principal: `${alice.owner}.manager_serve_${of.instanceId}`,
    });
    const { owner, actor, uid: lifecycleUid } = alice;
    expect(await stored(space, managerRows.key(of))).toEqual({
      v: 1,
      instanceId: of.instanceId,
      owner,
      managerLifecycleUid: of.uid,
      grantedBy: { kind: "actor", owner, actor, lifecycleUid },
    });
    expect(await stored(space, byManagerRows.key({ owner, instanceId: of.instanceId }))).toEqual({});
    for (const role of ["supervisor", "executor"] as const) {
      await expectRow(space, of, role, answer.credentials[role], { credentialKey: request.identities[role].id });
    }
    expect(await written(before)).toBe(5);
    const asking = await of.connectAs(supervisor.jwt, of.keys.supervisor);
    const triple = `${owner}.manager_${of.instanceId}.${of.uid}`;
    await hears(space.roots.space, asking, `cotal.demo.ep.one.auth.manager-register.${triple}.${"n".repeat(22)}`);
  });

  it("says back what it was given as it was given", async () => {
    const of = await fresh();
    const { identities, ...rest } = args(of);
    const reversed = Object.fromEntries(Object.entries(identities).reverse()) as typeof identities;
    const answer = await alice.ask(managerPrepare, { ...rest, identities: reversed });
    expect(JSON.stringify(answer.identities)).toBe(JSON.stringify(reversed));
  });

  it("at once with another makes one instance; the other is told to ask again", async () => {
    const of = await fresh();
    const [one, other] = [pauseCommit(`epgate.manager.${of.instanceId}`), alice.ask(managerPrepare, args(of))];
    other.catch(() => {});
    await one.reached;
    await alice.ask(managerPrepare, args(of));
    await unchanged(space, "conflict", () => {
      one.resume();
      return other;
    });
    expect((await alice.ask(managerPrepare, args(of))).operation).toBe("prepare");
  });
});

describe("a repeat", () => {
  it("issues anew, on the manager's own connection too, and leaves gate and manager row alone", async () => {
    const gate = await space.store.read(gateKeyOf(manager));
    const row = await space.store.read(managerRows.key(manager));
    const before = await sequences(space);
    const one = await alice.ask(managerPrepare, args(manager));
    const other = await manager.client.call(managerPrepare, args(manager));
    expect(await written(before)).toBe(4);
    for (const { credentials } of [one, other]) {
      expect((await rowOf(space, manager, credentials.supervisor.jwt))?.value.state).toBe("active");
    }
    expect(await space.store.read(gateKeyOf(manager))).toEqual(gate);
    expect(await space.store.read(managerRows.key(manager))).toEqual(row);
  });

  it("may bring other nkeys", async () => {
    const of = await fresh();
    await alice.ask(managerPrepare, args(of));
    const identities = { ...args(of).identities, supervisor: { id: UserNkey.parse(createKeyPair("user").public) } };
    const answer = await alice.ask(managerPrepare, { ...args(of), identities });
    expect((await rowOf(space, of, answer.credentials.supervisor.jwt))?.value.credentialKey).toBe(
      identities.supervisor.id,
    );
  });

  it("by another granter of the owner changes the granter and touches the gate", async () => {
    const ops = await space.person("alice", { actor: "ops", scope: ["supervise"] });
    const of = await space.manager(alice);
    const gate = await space.store.read(gateKeyOf(of));
    await ops.ask(managerPrepare, { ...args(of), actor: ops.actor });
    const { grantedBy } = await stored(space, managerRows.key(of));
    expect(grantedBy).toEqual({ kind: "actor", owner: alice.owner, actor: "ops", lifecycleUid: ops.uid });
    const after = await space.store.read(gateKeyOf(of));
    expect(after?.value).toEqual(gate?.value);
    expect(after?.revision).toBeGreaterThan(gate?.revision ?? 0);
    // The former one's word no longer counts on the manager's connection, which now names another actor.
    await unchanged(space, "permission-denied", () => of.client.call(managerPrepare, args(of), { once: true }));
  });
});

describe("check", () => {
  const refused = (
    code: "permission-denied" | "failed-precondition" | "resource-exhausted",
    of: TestManager,
    by = alice,
  ) => unchanged(space, code, () => by.ask(managerPrepare, args(of)));

  it("1: another owner's instance is not given", async () => {
    const bob = await stranger();
    await refused("permission-denied", manager, bob);
    const principal = `${alice.owner}.manager_${manager.instanceId}` as Principal;
    await during(space, gateKeyOf(manager), { principal }, () => refused("permission-denied", manager));
  });

  it("2: a gate that is frozen or retired must be repaired or is over", async () => {
    for (const change of [frozen(), frozen("retirement"), retired()]) {
      await during(space, gateKeyOf(manager), change, () => refused("failed-precondition", manager));
    }
  });

  it("3: an instance is known under one owner and one uid", async () => {
    const other = { ...args(manager), managerLifecycleUid: newUid(systemPorts) };
    await unchanged(space, "permission-denied", () => alice.ask(managerPrepare, other));
    const bob = await stranger();
    const of = await fresh(bob);
    await space.put(managerRows.key(of), {
      v: 1,
      instanceId: of.instanceId,
      owner: alice.owner,
      managerLifecycleUid: of.uid,
      grantedBy: { kind: "actor", owner: alice.owner, actor: alice.actor, lifecycleUid: alice.uid },
    });
    await refused("permission-denied", of, bob);
  });

  it("4: an owner has at most 64 instances that have not ended", async () => {
    const bob = await stranger();
    const keys = Array.from({ length: LIMITS.gatesPerOwner }, () => newUid(systemPorts));
    const gateKey = (instanceId: (typeof keys)[number]) => epGateRows.key({ endpoint: MANAGER, instanceId });
    await Promise.all(
      keys.map(async (instanceId) => {
        const gate: EpGate = {
          state: "open",
          generation: 0,
          processEpoch: 0,
          registrationRevision: 0,
          nameAuthorityRevision: 0,
          principal: `${bob.owner}.manager_serve_${instanceId}` as Principal,
        };
        const rows = [
          create(gateKey(instanceId), gate),
          create(byManagerRows.key({ owner: bob.owner, instanceId }), {}),
        ];
        await space.store.commit(rows, ownWork(systemPorts, 10_000));
      }),
    );
    await refused("resource-exhausted", await fresh(bob), bob);
    const [one] = keys;
    if (!one) throw new Error("no key");
    await space.put(gateKey(one), { ...(await stored(space, gateKey(one))), ...retired() });
    expect((await bob.ask(managerPrepare, args(await fresh(bob)))).operation).toBe("prepare");
    await refused("resource-exhausted", await fresh(bob), bob);
  });
});

describe("the mint", () => {
  /** Stops before the commit, does that, and gives what goes on. */
  async function meanwhile(of: TestManager, what: () => Promise<unknown>) {
    const pause = pauseCommit(`epcred.manager.${of.instanceId}.`);
    const answer = of.person.ask(managerPrepare, args(of));
    answer.catch(() => {});
    await pause.reached;
    await what();
    return () => {
      pause.resume();
      return answer;
    };
  }

  it("is made on a second run where the gate was only touched while signing", async () => {
    const goOn = await meanwhile(manager, async () => {
      const gate = await space.store.read(gateKeyOf(manager));
      if (gate) await space.store.commit([touch(gate)], ownWork(systemPorts, 5_000));
    });
    const { credentials } = await goOn();
    expect((await rowOf(space, manager, credentials.executor.jwt))?.value.state).toBe("active");
  });

  it("is lost where the gate was frozen while signing", async () => {
    const gate = await stored(space, gateKeyOf(manager));
    const goOn = await meanwhile(manager, () => space.put(gateKeyOf(manager), { ...gate, ...frozen() }));
    await unchanged(space, "conflict", goOn);
    await space.put(gateKeyOf(manager), gate);
  });

  it.each(["known already", "new"])(
    "is refused where the granter was revoked while signing for an instance %s",
    async (which) => {
      const bob = await stranger();
      const of = await space.manager(bob, { upTo: which === "new" ? "none" : "prepare" });
      const goOn = await meanwhile(of, async () => {
        const row = await stored(space, actorRows.key(bob));
        await space.put(actorRows.key(bob), {
          ...row,
          state: "revoked",
          revokedAt: systemPorts.now(),
          revokedBy: row.grantedBy,
        });
      });
      await unchanged(space, "permission-denied", goOn);
    },
  );

  it("is refused where the granter lost the scope while signing", async () => {
    const bob = await stranger();
    const of = await fresh(bob);
    const row = await stored(space, actorRows.key(bob));
    const goOn = await meanwhile(of, () => space.put(actorRows.key(bob), { ...row, scope: [] }));
    await unchanged(space, "permission-denied", goOn);
  });
});
