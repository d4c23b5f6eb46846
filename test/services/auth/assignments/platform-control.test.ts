import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentEnroll } from "../../../../shared/contracts/auth/agents/enroll.ts";
import { platformAssign } from "../../../../shared/contracts/auth/assignments/platform-assign.ts";
import { platformControl } from "../../../../shared/contracts/auth/assignments/platform-control.ts";
import { managerRegister } from "../../../../shared/contracts/auth/manager/register.ts";
import { runRevoke } from "../../../../shared/contracts/auth/runs/run-revoke.ts";
import type { Operation } from "../../../../shared/contracts/operation.ts";
import { decodeJwt } from "../../../../shared/credentials/jwt.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { admissionRows } from "../../../../shared/rows/admission.ts";
import { assignmentRows, currentRows } from "../../../../shared/rows/assignment.ts";
import { type EpGate, epGateRows } from "../../../../shared/rows/gate.ts";
import { type GoalIndex, goalIndexRows } from "../../../../shared/rows/mesh/goal.ts";
import { serviceSpecRows } from "../../../../shared/rows/service.ts";
import { Actor, Digest, EnvelopeId, principalOf, type Uid } from "../../../../shared/tokens.ts";
import { freshRunId, freshTakeoverId, type TestManager } from "../../../kit/manager.ts";
import { admission } from "../../../kit/rows.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { during, frozen, MANAGER, proven, retired, stored } from "../scene.ts";
import { assignedManager, type Door, PLATFORM, requestId, through } from "./assigned.ts";
import { itIsADoor, prepareOf, renewOf, rowsOf } from "./doors.ts";

let space: TestSpace;
let door: Door;
let manager: TestManager;
beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth"], authTimeoutS: 1 });
  door = { space, host: await space.client("platform_host"), kind: "platform", owner: PLATFORM };
  manager = await assignedManager(door);
});
afterAll(() => space.stop());

const refused = (code: ErrorCode, request: unknown) => unchanged(space, code, () => through(door, request as object));

itIsADoor(platformControl, () => ({ door, manager }));

describe("the platform's door", () => {
  it("admits the kinds of a platform manager, and names what it does not host (check 1)", async () => {
    const request = renewOf(manager);
    await refused("bad-request", { ...request, actor: "alice" });
    for (const kind of ["enrollment", "prepare-retirement", "runtime-create", "runtime-status", "anything"]) {
      await refused("unimplemented", { ...request, kind: `manager-managed-agent-${kind}` });
    }
    for (const kind of [
      "manager-run-revoke",
      "actor-renew",
      "platform-control-authority",
      "delegated-user-intent",
      "manager-run-attempt",
      "unheard-of",
      7,
    ]) {
      await refused("bad-request", { ...request, kind });
    }
    await refused("bad-request", { ...request, operation: "unheard-of" });
    for (const nothing of [null, [], "renew", 7]) {
      await unchanged(space, "bad-request", () => through(door, {}, { request: nothing }));
    }
  });

  it("wants the account's one assignment to be this one (check 3)", async () => {
    const key = currentRows.key({});
    await during(space, key, { instanceId: newUid(systemPorts) }, () => refused("permission-denied", renewOf(manager)));
    const { assignmentRevision } = await stored(space, key);
    await during(space, key, { assignmentRevision: assignmentRevision + 1 }, () =>
      refused("permission-denied", renewOf(manager)),
    );
    await during(space, assignmentRows.key(manager), { state: "revoked" }, () =>
      refused("permission-denied", proven(manager, "manager-goal-index-scan")),
    );
    const supervised = { ...(await stored(space, assignmentRows.key(manager))), instanceId: newUid(systemPorts) };
    const { predecessorInstanceId: _, ...rest } = supervised as typeof supervised & { predecessorInstanceId?: Uid };
    await space.put(assignmentRows.key(supervised), {
      ...rest,
      kind: "platform-supervisor",
      owner: `u_${"b".repeat(26)}` as typeof rest.owner,
      scope: ["supervise"],
      expiresAt: Date.now() + 60_000,
      state: "assigned",
    });
    await refused("permission-denied", { ...renewOf(manager), instanceId: supervised.instanceId });
  });

  it("maintains its assigned instance alone (check 5)", async () => {
    const maintenance = {
      ...manager.envelope(),
      kind: "manager-service-maintenance",
      targetInstanceId: newUid(systemPorts),
    };
    const principals = [principalOf(PLATFORM, Actor.parse(`manager_goal_${manager.instanceId}`))];
    await refused("permission-denied", { ...maintenance, operation: "evict-family-principal", principals });
    await refused("permission-denied", { ...maintenance, operation: "reconcile-registration" });
    const own = {
      ...maintenance,
      targetInstanceId: manager.instanceId,
      operation: "evict-family-principal",
      principals,
    };
    const answer = await through(door, own, {}, { deadlineMs: 30_000 });
    expect(answer).toMatchObject({ owner: PLATFORM, evictions: [{ principal: principals[0], verifiedGone: true }] });
  });

  it("reads for it what a person's manager may read", async () => {
    const goal: GoalIndex = {
      v: 1,
      endpoint: MANAGER,
      owner: PLATFORM,
      actor: Actor.parse("cli"),
      uid: manager.uid,
      goalId: EnvelopeId.parse("one"),
      iid: manager.instanceId,
    };
    await space.put(goalIndexRows.key(goal), goal);
    const goals = await through(door, proven(manager, "manager-goal-index-scan"));
    expect(goals).toMatchObject({ kind: "manager-goal-index-scan", entries: [goal] });
    const caller = { owner: PLATFORM, actor: "cli", lifecycleUid: manager.uid };
    const admin = await through(door, { ...proven(manager, "manager-admin-authorization"), caller });
    expect(admin).toMatchObject({ authorized: false });
    const retained = { target: caller, actorToken: "x", sentinelCreds: "x" };
    await refused("permission-denied", { ...proven(manager, "manager-retained-agent-validation"), ...retained });
  });

  it("issues for a run a pair that chats nowhere", async () => {
    const runId = freshRunId();
    await space.put(admissionRows.key({ endpoint: MANAGER, runId }), {
      ...admission(runId),
      instanceId: manager.instanceId,
    });
    const attempt = {
      runId,
      takeoverId: freshTakeoverId(),
      epoch: 1,
      fencingToken: 1,
      driverId: createKeyPair("user").public,
      mediatorId: createKeyPair("user").public,
    };
    const request = { ...manager.proven(), kind: "manager-run-attempt", attempt };
    const { credentials } = (await through(door, request)) as { credentials: { mediator: { jwt: string } } };
    expect(JSON.stringify(decodeJwt(credentials.mediator.jwt))).not.toContain(".chat.");
    expect((await rowsOf(door, manager)).filter((row) => row.runId === runId)).toHaveLength(2);
    await refused("bad-request", { ...request, operator: { id: attempt.driverId, takeoverId: attempt.takeoverId } });
  });

  it("lets the manager itself ask for no more than it does", async () => {
    const deny = (operation: Operation, args: object) =>
      unchanged(space, "permission-denied", () => manager.client.call(operation, args as never, { once: true }));
    const target = { actor: "coder", tokenHash: "0".repeat(64) };
    await deny(agentEnroll, { ...proven(manager, "manager-managed-agent-enrollment"), target });
    const revoke = { runId: freshRunId(), reason: "none" };
    await deny(runRevoke, { ...manager.proven(), kind: "manager-run-revoke", revoke });
  });
});

describe("an instance that replaces another", () => {
  const predecessorGate = (instanceId: Uid, registrationRevision: number): EpGate => ({
    state: "open",
    generation: 1,
    processEpoch: 0,
    registrationRevision,
    nameAuthorityRevision: 0,
    principal: principalOf(PLATFORM, Actor.parse(`manager_serve_${instanceId}`)),
  });

  it("starts once its predecessor is neither frozen nor registered (check 6)", async () => {
    const { lifecycleUid } = await stored(space, assignmentRows.key(manager));
    const revoking = { requestId: requestId(), owner: PLATFORM, instanceId: manager.instanceId, lifecycleUid };
    const expectedRevision = (await stored(space, assignmentRows.key(manager))).assignmentRevision;
    await space.operator.call(platformAssign, { ...revoking, state: "revoked", expectedRevision });

    const predecessorInstanceId = newUid(systemPorts);
    const key = { endpoint: MANAGER, instanceId: predecessorInstanceId };
    const spec = {
      endpoint: MANAGER,
      owner: PLATFORM,
      clusterDigests: [Digest.parse(`sha256:${"0".repeat(64)}`)],
      protocol: { v: 2 as const },
    };
    const revision = await space.put(serviceSpecRows.key(key), spec);
    const heir = await assignedManager(door, { upTo: "none", assign: { predecessorInstanceId } });
    const gate = epGateRows.key(key);

    await space.put(gate, predecessorGate(predecessorInstanceId, revision));
    await refused("failed-precondition", prepareOf(heir));
    await space.put(gate, { ...predecessorGate(predecessorInstanceId, revision), ...frozen() });
    await refused("failed-precondition", prepareOf(heir));
    await space.put(gate, predecessorGate(predecessorInstanceId, revision - 1));
    await heir.prepare();
    await heir.publish();

    const register = () =>
      heir.client.call(
        managerRegister,
        { v: 1, requestId: requestId(), instanceId: heir.instanceId, managerLifecycleUid: heir.uid },
        { once: true },
      );
    await space.put(gate, predecessorGate(predecessorInstanceId, revision));
    await unchanged(space, "failed-precondition", register);
    await space.put(gate, { ...predecessorGate(predecessorInstanceId, revision), ...retired() });
    await heir.register();

    const contractArtifacts = [...heir.contract.documents];
    const activate = {
      ...heir.envelope(),
      kind: "manager-service-authority",
      operation: "activate",
      registrationProof: heir.declaration(contractArtifacts),
      contractArtifacts,
    };
    await space.put(gate, { ...predecessorGate(predecessorInstanceId, revision), ...frozen() });
    await refused("failed-precondition", activate);
    await space.put(gate, { ...predecessorGate(predecessorInstanceId, revision), ...retired() });
    expect(await through(door, activate)).toMatchObject({ operation: "activate", owner: PLATFORM });
  });
});
