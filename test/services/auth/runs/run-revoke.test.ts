import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runEvictions } from "../../../../services/auth/runs/metrics.ts";
import { SERVICES } from "../../../../services/service.ts";
import { runAttempt } from "../../../../shared/contracts/auth/runs/run-attempt.ts";
import { runRevoke } from "../../../../shared/contracts/auth/runs/run-revoke.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { actorRows } from "../../../../shared/rows/actor.ts";
import { revocationRows } from "../../../../shared/rows/admission.ts";
import { subjectOf } from "../../../../shared/store/streams.ts";
import { Actor, Owner, type Principal, type RunId, Scope, type Triple, UserNkey } from "../../../../shared/tokens.ts";
import { freshRunId, freshTakeoverId, type TestManager } from "../../../kit/manager.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import type { Person } from "../../../kit/person.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { connectOnce } from "../connections.ts";
import { rowOf } from "../issuing.ts";
import { during, frozen, gateKeyOf, MANAGER, retired, stored } from "../scene.ts";
import { admittedRun } from "./runs.ts";

type Args = Input<typeof runRevoke>;

let space: TestSpace;
let alice: Person;
let manager: TestManager;
/** Of the common refusals: never revoked. */
let standing: RunId;

beforeAll(async () => {
  space = await startSpace({ services: SERVICES, authTimeoutS: 1 });
  alice = await space.person("alice", { scope: ["supervise"] });
  manager = await space.manager(alice);
  standing = await admittedRun(space, manager);
});
afterAll(() => space.stop());

const args = (runId = standing, reason = "started by mistake", of = manager): Args => ({
  ...of.proven(),
  kind: "manager-run-revoke",
  revoke: { runId, reason },
});
const revoke = (request: Args) => manager.client.call(runRevoke, request, { once: true });
const refused = (code: ErrorCode, change: object = {}) =>
  unchanged(space, code, () => revoke({ ...args(), ...change }));
const markerOf = (runId: RunId) => revocationRows.key({ endpoint: MANAGER, runId });
const notMarked = async () => expect(await space.store.read(markerOf(standing))).toBeUndefined();

/** The credentials of a run's first attempt, and its driver connected. */
async function running(runId: RunId) {
  const driver = createKeyPair("user");
  const attempt = {
    runId,
    takeoverId: freshTakeoverId(),
    epoch: 1,
    fencingToken: 1,
    driverId: UserNkey.parse(driver.public),
    mediatorId: UserNkey.parse(createKeyPair("user").public),
  };
  const request = { ...manager.proven(), kind: "manager-run-attempt", attempt } as const;
  const { credentials } = await manager.client.call(runAttempt, request);
  return { credentials, driving: await connectOnce(space, credentials.driver.jwt, driver), request };
}

describe("the caller (C2 to C5)", () => {
  const as = (code: ErrorCode, caller: Triple) =>
    unchanged(space, code, () => space.clientAs(caller).call(runRevoke, args(), { once: true }));

  it("is a person through a gateway, or the manager itself", async () => {
    const own = { owner: alice.owner, actor: Actor.parse(`manager_${manager.instanceId}`), uid: manager.uid };
    await as("permission-denied", await space.provisioned("operator"));
    await as("permission-denied", await space.provisioned("platform_host"));
    await as("permission-denied", alice);
    await as("permission-denied", { ...own, actor: Actor.parse(`manager_serve_${manager.instanceId}`) });
    await as("permission-denied", { ...own, owner: Owner.parse(`u_${"z".repeat(26)}`) });
    await as("expired", { ...own, uid: newUid(systemPorts) });
    await as("unauthenticated", await space.provisioned("gateway_loopback"));
  });

  it("needs no scope, but an interactive, active row", async () => {
    const runId = await admittedRun(space, manager);
    const key = actorRows.key(alice);
    await during(space, key, { scope: [] }, async () => {
      expect((await alice.ask(runRevoke, args(runId))).runId).toBe(runId);
    });
    await during(space, key, { state: "revoked" }, async () => {
      await refused("permission-denied");
      await unchanged(space, "permission-denied", () => alice.ask(runRevoke, args()));
    });
  });

  it("names the manager of its subject, distinct nkeys and this space", async () => {
    const { identities } = manager.envelope();
    await refused("permission-denied", { actor: "another" });
    await refused("permission-denied", { instanceId: newUid(systemPorts) });
    await refused("permission-denied", { managerLifecycleUid: newUid(systemPorts) });
    await refused("bad-request", { identities: { ...identities, serve: identities.executor } });
    await refused("permission-denied", { space: "another" });
  });
});

describe("check", () => {
  it("1: the run is admitted, on this instance", async () => {
    await refused("permission-denied", { revoke: { runId: freshRunId(), reason: "x" } });
    const other = await space.manager(alice, { upTo: "none" });
    const runId = await admittedRun(space, other);
    await refused("permission-denied", { revoke: { runId, reason: "x" } });
  });

  it("2: it is its owner or an administrator who asks", async () => {
    const bob = await space.person("bob", { scope: ["supervise"] });
    await unchanged(space, "permission-denied", () => bob.ask(runRevoke, args()));
    const bobsRun = await admittedRun(space, { ...manager, person: bob } as TestManager);
    await refused("permission-denied", { revoke: { runId: bobsRun, reason: "x" } });
    await during(space, actorRows.key(alice), { scope: [Scope.parse("admin")] }, async () => {
      expect((await revoke(args(bobsRun))).revocation.by).toBe(`${alice.owner}.cli`);
    });
  });

  it("3: the instance is whole", async () => {
    const { principal } = await stored(space, gateKeyOf(manager));
    const other = principal.replace("manager_serve_", "manager_goal_") as Principal;
    await during(space, gateKeyOf(manager), { principal: other }, () => refused("failed-precondition"));
    const { owner } = await space.person("carol");
    const theirs = `${owner}.manager_serve_${manager.instanceId}` as Principal;
    await during(space, gateKeyOf(manager), { principal: theirs }, () => refused("failed-precondition"));
    const described = await space.manager(alice, { upTo: "none" });
    const runId = await admittedRun(space, described);
    const request = { ...args(runId), ...described.envelope() };
    await unchanged(space, "failed-precondition", () => alice.ask(runRevoke, request));
  });

  it("4: the registration is current, and the proof the manager's own, whoever asks", async () => {
    const { instanceId, coordinates } = manager;
    const { processEpoch: epoch } = coordinates;
    await refused("permission-denied", { accountPublicKey: createKeyPair("account").public });
    for (const change of [frozen(), frozen("retirement"), retired()]) {
      await during(space, gateKeyOf(manager), change, () => refused("failed-precondition"));
    }
    const stale = await refused("conflict", { processEpoch: epoch + 1 });
    expect(stale.details).toEqual([{ kind: "ai.cotal.auth.incarnation", instanceId, epoch }]);
    await refused("permission-denied", { registrationProof: manager.declaration() });
    await during(space, gateKeyOf(manager), { registrationRevision: 1 }, () => refused("permission-denied"));
    const admin = await space.person("dave", { actor: "chief", scope: ["admin"] });
    const runId = await admittedRun(space, manager);
    const request = { ...args(runId), actor: admin.actor };
    const unproven = { ...request, registrationProof: manager.declaration() };
    await unchanged(space, "permission-denied", () => admin.ask(runRevoke, unproven));
    expect((await admin.ask(runRevoke, request)).revocation.by).toBe(`${admin.owner}.chief`);
  });

  it("5: the marker that stands can be read", async () => {
    const runId = await admittedRun(space, manager);
    const subject = subjectOf("admission", space.space, markerOf(runId).key);
    await space.roots.authority.request(subject, "{", { timeout: 5_000 });
    await refused("internal", { revoke: { runId, reason: "x" } });
  });

  it("a reason has 1 to 1,024 characters", async () => {
    for (const reason of ["", "x".repeat(1_025)]) await refused("bad-request", { revoke: { runId: standing, reason } });
    await notMarked();
  });
});

describe("a revocation", () => {
  it("marks the run, revokes its credentials and ends its connections", async () => {
    const runId = await admittedRun(space, manager);
    const { credentials, driving } = await running(runId);
    const other = await running(await admittedRun(space, manager));
    const before = await sequences(space);
    const request = args(runId, "a\nreason of two lines");
    const answer = await revoke(request);
    expect(answer).toEqual({
      v: 1,
      kind: "manager-run-revoke",
      requestId: request.requestId,
      runId,
      revocation: {
        version: 1,
        runId,
        reason: "a\nreason of two lines",
        by: `${alice.owner}.cli`,
        revokedAt: expect.any(Number),
      },
    });
    expect(await stored(space, markerOf(runId))).toEqual(answer.revocation);
    await driving.closed();
    const { values } = await runEvictions.get();
    expect(values).toContainEqual({ labels: { result: "gone" }, value: expect.any(Number) });
    for (const { jwt } of Object.values(credentials)) {
      expect((await rowOf(space, manager, jwt))?.value.state).toBe("revoked");
    }
    expect((await rowOf(space, manager, other.credentials.driver.jwt))?.value.state).toBe("active");
    expect(other.driving.isClosed()).toBe(false);
    await other.driving.close();
    const after = await sequences(space);
    expect(after).toEqual({ ...before, admission: (before.admission ?? 0) + 1, auth: (before.auth ?? 0) + 2 });
  });

  it("is the first one, whatever a later one says; its credentials are looked for again", async () => {
    const runId = await admittedRun(space, manager);
    const first = await revoke(args(runId, "first"));
    const before = await sequences(space);
    const second = await alice.ask(runRevoke, args(runId, "second"));
    expect(second.revocation).toEqual(first.revocation);
    expect(await sequences(space)).toEqual(before);
  });

  it("leaves no attempt behind that was signed meanwhile", async () => {
    const runId = await admittedRun(space, manager);
    const pause = pauseCommit(`epcred.manager.${manager.instanceId}.`);
    const attempt = running(runId);
    attempt.catch(() => {});
    await pause.reached;
    await revoke(args(runId));
    pause.resume();
    await expect(attempt).rejects.toMatchObject({ code: "permission-denied" });
    await unchanged(space, "permission-denied", () => running(runId));
  });
});
