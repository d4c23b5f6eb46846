import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { SERVICES } from "../../../../services/service.ts";
import { runAttempt } from "../../../../shared/contracts/auth/runs/run-attempt.ts";
import type { Input, Output } from "../../../../shared/contracts/operation.ts";
import { createKeyPair, type KeyPair } from "../../../../shared/credentials/nkeys.ts";
import { runHolder } from "../../../../shared/credentials/roles.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { ISSUE } from "../../../../shared/limits.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { admissionRows, revocationRows } from "../../../../shared/rows/admission.ts";
import { epCredRows } from "../../../../shared/rows/credential.ts";
import { managerRows } from "../../../../shared/rows/manager.ts";
import { runStatusRows } from "../../../../shared/rows/mesh/run.ts";
import { type RunId, type Space, UserNkey } from "../../../../shared/tokens.ts";
import { freshRunId, freshTakeoverId, type TestManager } from "../../../kit/manager.ts";
import { type Pause, pauseCommit, pauseRead } from "../../../kit/pause.ts";
import type { ManagerCaller, Person } from "../../../kit/person.ts";
import { admission } from "../../../kit/rows.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { connectOnce } from "../connections.ts";
import { hears } from "../hear.ts";
import { expectRow, itIssues, rowOf } from "../issuing.ts";
import { MANAGER } from "../scene.ts";
import { admittedRun, createJournals, heldBy, markRevoked, writeStatus } from "./runs.ts";

type Attempt = Input<typeof runAttempt>["attempt"];

let space: TestSpace;
let alice: Person;
let manager: TestManager;
let caller: ManagerCaller;
/** The run that a manager's common requests are about. */
const runs = new WeakMap<TestManager, RunId>();

beforeAll(async () => {
  space = await startSpace({ services: SERVICES, authTimeoutS: 1 });
  alice = await space.person("alice", { scope: ["supervise", "run"], allowPublish: ["team"] });
  manager = await space.manager(alice);
  caller = await alice.callerOf(manager);
  await createJournals(space);
  await before(manager);
});
afterAll(() => space.stop());

async function before(of: TestManager): Promise<void> {
  runs.set(of, await admittedRun(space, of));
}

const keys = { driver: createKeyPair("user"), mediator: createKeyPair("user") };
function args(of: TestManager, change: Partial<Attempt> = {}): Input<typeof runAttempt> {
  const attempt = {
    runId: runs.get(of) ?? freshRunId(),
    takeoverId: freshTakeoverId(),
    epoch: 1,
    fencingToken: 1,
    driverId: UserNkey.parse(keys.driver.public),
    mediatorId: UserNkey.parse(keys.mediator.public),
    ...change,
  };
  return { ...of.proven(), kind: "manager-run-attempt", attempt };
}
const attempt = (change: Partial<Attempt>) => manager.client.call(runAttempt, args(manager, change), { once: true });
const refused = (code: ErrorCode, change: Partial<Attempt>) => unchanged(space, code, () => attempt(change));

/** Stops there, does that, and goes on to a refusal that leaves nothing written. */
async function refusedAfter(pause: Pause, code: ErrorCode, runId: RunId, what: () => Promise<unknown>): Promise<void> {
  const answer = alice.ask(runAttempt, args(manager, { runId }));
  answer.catch(() => {});
  await pause.reached;
  await what();
  await unchanged(space, code, () => {
    pause.resume();
    return answer;
  });
}
const rowsOf = async (runId: RunId) => {
  const { entries } = await space.store.scan(epCredRows, { endpoint: MANAGER, instanceId: manager.instanceId });
  return entries.filter(({ value }) => value.runId === runId).map(({ value }) => value);
};
const nkeys = (pair: Record<"driver" | "mediator", KeyPair>) => ({
  driverId: UserNkey.parse(pair.driver.public),
  mediatorId: UserNkey.parse(pair.mediator.public),
});
const freshKeys = () => ({ driver: createKeyPair("user"), mediator: createKeyPair("user") });

itIssues({ operation: runAttempt, proof: "K", scene: () => ({ space, person: alice, manager }), before, args });

describe("an attempt", () => {
  it("gives the first driver and mediator of an admitted run, in one commit", async () => {
    const runId = await admittedRun(space, manager);
    const before = await sequences(space);
    const request = args(manager, { runId });
    const answer = await manager.client.call(runAttempt, request);
    const { driver, mediator } = answer.credentials;
    expect(answer).toEqual({
      v: 1,
      kind: "manager-run-attempt",
      space: "demo",
      owner: alice.owner,
      actor: "cli",
      instanceId: manager.instanceId,
      managerLifecycleUid: manager.uid,
      requestId: request.requestId,
      registrationProof: manager.proof,
      accountPublicKey: request.accountPublicKey,
      processEpoch: request.processEpoch,
      identities: request.identities,
      attempt: request.attempt,
      credentials: { driver: { jwt: driver.jwt, exp: driver.exp }, mediator: { jwt: mediator.jwt, exp: mediator.exp } },
    });
    expect(await sequences(space)).toEqual({ ...before, auth: (before.auth ?? 0) + 2 });
    const { actor, uid } = runHolder(runId);
    const held = { runId, lifecycleUid: uid, holderPrincipal: `${alice.owner}.${actor}` as never };
    await expectRow(space, manager, "runDriver", driver, { ...held, credentialKey: request.attempt.driverId });
    await expectRow(space, manager, "runMediator", mediator, { ...held, credentialKey: request.attempt.mediatorId });
  });

  it("is good for the run's journal, and for the granter's channels", async () => {
    const runId = await admittedRun(space, manager);
    const { driver, mediator } = (await attempt({ runId })).credentials;
    const [driving, mediating] = [
      await manager.connectAs(driver.jwt, keys.driver, "driver"),
      await manager.connectAs(mediator.jwt, keys.mediator, "mediator"),
    ];
    const root = space.roots.space;
    await hears(root, driving, `cotal.demo.wfj.${runId}`);
    await expect(hears(root, driving, `cotal.demo.wfj.${freshRunId()}`)).rejects.toThrow();
    await hears(root, mediating, `cotal.demo.chat.${alice.owner}.cli.team`);
    await expect(hears(root, mediating, `cotal.demo.chat.${alice.owner}.cli.other`)).rejects.toThrow();
    const { processEpoch: epoch } = manager.coordinates;
    await hears(root, mediating, `cotal.demo.ept.manager.${manager.instanceId}.${epoch}.x.schedule`);
  });

  it("repeats with its own nkeys until the status moves, and takes nothing back", async () => {
    const runId = await admittedRun(space, manager);
    const [one, other] = [await attempt({ runId }), await attempt({ runId })];
    for (const { credentials } of [one, other]) {
      expect((await rowOf(space, manager, credentials.driver.jwt))?.value.state).toBe("active");
    }
    await writeStatus(space, heldBy(manager, runId));
    await refused("conflict", { runId });
  });

  it("after another revokes the former one's rows and ends its connections before it answers", async () => {
    const runId = await admittedRun(space, manager);
    const [former, next] = [freshKeys(), freshKeys()];
    const first = await attempt({ runId, ...nkeys(former) });
    const driving = await connectOnce(space, first.credentials.driver.jwt, former.driver);
    const mediating = await connectOnce(space, first.credentials.mediator.jwt, former.mediator);
    await writeStatus(space, heldBy(manager, runId));
    const second = await attempt({ runId, epoch: 2, fencingToken: 2, ...nkeys(next) });
    await Promise.all([driving.closed(), mediating.closed()]);
    const state = async (answer: Output<typeof runAttempt>, name: "driver" | "mediator") =>
      (await rowOf(space, manager, answer.credentials[name].jwt))?.value.state;
    expect([await state(first, "driver"), await state(first, "mediator")]).toEqual(["revoked", "revoked"]);
    expect([await state(second, "driver"), await state(second, "mediator")]).toEqual(["active", "active"]);
    await connectOnce(space, second.credentials.driver.jwt, next.driver).then((connection) => connection.close());
  });
});

describe("check 2: the run", () => {
  it("is admitted, on this instance", async () => {
    const runId = freshRunId();
    await refused("permission-denied", { runId });
    await admittedRun(space, await space.manager(alice, { upTo: "none" }), runId);
    await refused("permission-denied", { runId });
    const elsewhere = { ...admission(freshRunId()), space: "other" as Space, instanceId: manager.instanceId };
    await space.put(admissionRows.key({ endpoint: MANAGER, runId: elsewhere.runId }), elsewhere);
    await refused("permission-denied", { runId: elsewhere.runId });
  });

  it("is not revoked", async () => {
    const runId = await admittedRun(space, manager);
    await markRevoked(space, runId);
    await refused("permission-denied", { runId });
  });

  it("is not revoked before the last look", async () => {
    const runId = await admittedRun(space, manager);
    const pause = pauseRead(revocationRows.key({ endpoint: MANAGER, runId }).key);
    await refusedAfter(pause, "permission-denied", runId, () => markRevoked(space, runId));
  });

  it("is not revoked between commit and release: then the rows are revoked, and nothing leaves", async () => {
    const runId = await admittedRun(space, manager);
    const pause = pauseCommit(`epcred.manager.${manager.instanceId}.`, "after");
    const answer = attempt({ runId });
    answer.catch(() => {});
    await pause.reached;
    await markRevoked(space, runId);
    pause.resume();
    await expect(answer).rejects.toMatchObject({ code: "permission-denied", outcome: "unknown" });
    expect((await rowsOf(runId)).map(({ state }) => state)).toEqual(["revoked", "revoked"]);
  });
});

describe("check 3: the served request", () => {
  it("is a run-resume of this run, by its owner, once", async () => {
    const runId = await admittedRun(space, manager);
    const served = await caller.request("run-resume", { runId });
    expect((await attempt({ runId, served })).attempt.served).toBe(served);
    await refused("permission-denied", { runId, served });
    await refused("permission-denied", { runId, served: await caller.request("run-resume", { runId: freshRunId() }) });
    await refused("permission-denied", { runId, served: await caller.request("run-start", { runId }) });
  });

  it("is the run owner's own, whose manager it is not enough to be", async () => {
    const bob = await space.person(`bob-${newUid(systemPorts)}`, { scope: ["supervise"] });
    const runId = await admittedRun(space, { ...manager, person: bob, instanceId: manager.instanceId } as TestManager);
    await refused("permission-denied", { runId, served: await caller.request("run-resume", { runId }) });
  });

  it("has 1 to 1,024 characters", async () => {
    for (const served of ["", "x".repeat(1_025)]) await refused("bad-request", { served });
  });
});

describe("checks 4 and 5: the run's status", () => {
  it("is not an end (4)", async () => {
    const runId = await admittedRun(space, manager);
    for (const state of ["completed", "failed"] as const) {
      await writeStatus(space, heldBy(manager, runId), { state });
      await refused("failed-precondition", { runId, epoch: 2, fencingToken: 2 });
    }
  });

  it("has numbers to which this attempt's are the next ones (5)", async () => {
    const runId = await admittedRun(space, manager);
    for (const [epoch, fencingToken] of [
      [2, 1],
      [1, 2],
      [2, 2],
    ] as const) {
      await refused("conflict", { runId, epoch, fencingToken });
    }
    await writeStatus(space, { ...heldBy(manager, runId), epoch: 3, fencingToken: 5 }, { state: "released" });
    for (const [epoch, fencingToken] of [
      [1, 1],
      [3, 5],
      [3, 6],
      [4, 5],
      [5, 7],
      [4, 4],
    ] as const) {
      await refused("conflict", { runId, epoch, fencingToken });
    }
    expect((await attempt({ runId, epoch: 4, fencingToken: 6 })).attempt.epoch).toBe(4);
    for (const change of [{ epoch: 0 }, { fencingToken: 0 }]) await refused("bad-request", { runId, ...change });
  });

  it("is looked at once more where the granter's answer is long in coming", async () => {
    const runId = await admittedRun(space, manager);
    const began = performance.now();
    const pause = pauseRead(managerRows.key({ instanceId: manager.instanceId }).key, 2); // the first says who asks
    await refusedAfter(pause, "conflict", runId, async () => {
      await vi.waitFor(() => expect(performance.now() - began).toBeGreaterThan(10 * ISSUE.freshMs), 5_000);
      await writeStatus(space, heldBy(manager, runId));
    });
  });

  it("does not move before the last look", async () => {
    const runId = await admittedRun(space, manager);
    const pause = pauseRead(runStatusRows.key({ endpoint: MANAGER, runId }).key);
    await refusedAfter(pause, "conflict", runId, () => writeStatus(space, heldBy(manager, runId)));
  });
});
