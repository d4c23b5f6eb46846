import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { platformAssign } from "../../../../shared/contracts/auth/assignments/platform-assign.ts";
import { supervisorAssign } from "../../../../shared/contracts/auth/assignments/supervisor-assign.ts";
import { supervisorEnd } from "../../../../shared/contracts/auth/assignments/supervisor-end.ts";
import { instanceEndOpId } from "../../../../shared/credentials/roles.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { assignmentRows } from "../../../../shared/rows/assignment.ts";
import { stageRows } from "../../../../shared/rows/stage.ts";
import { Actor, type Owner, principalOf, type Uid } from "../../../../shared/tokens.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { credentialStates, freshOwner, requestId } from "../lifecycles.ts";
import { during, gateKeyOf, provisioned, stored } from "../scene.ts";
import { platformArgs } from "./assigned.ts";
import { instance } from "./instances.ts";

let space: TestSpace;
beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange"], authTimeoutS: 1 });
});
afterAll(() => space.stop());

const end = (owner: Owner, instanceId: Uid) =>
  space.operator.call(supervisorEnd, { requestId: requestId(), owner, instanceId }, { once: true });

/** Assigns a supervisor to an instance, and ends that again unless it is to stand. */
async function assigned(owner: Owner, instanceId: Uid, state: "assigned" | "ended" = "ended"): Promise<void> {
  const args = { owner, instanceId, lifecycleUid: newUid(systemPorts), expiresAt: Date.now() + 600_000 };
  const assign = (to: "assigned" | "ended", expectedRevision: number) =>
    space.operator.call(supervisorAssign, { requestId: requestId(), ...args, state: to, expectedRevision });
  await assign("assigned", 0);
  if (state === "ended") await assign("ended", 1);
}

it("ends the instance once its assignment has ended, and answers the same again", async () => {
  const owner = freshOwner();
  const of = await instance(space, owner);
  const { instanceId } = of;
  await assigned(owner, instanceId);
  const opId = instanceEndOpId(instanceId);
  const expected = {
    requestId: expect.any(String),
    owner,
    instanceId,
    opId,
    retired: true,
    revokedRows: 3,
    evictedPrincipals: expect.arrayContaining([...of.holders]),
    evictionVerified: true,
  };
  expect(await end(owner, instanceId)).toEqual(expected);
  expect(await credentialStates(space, { instanceId })).toEqual(["revoked", "revoked", "revoked"]);
  expect(await stored(space, gateKeyOf(of))).toMatchObject({ state: "retired", op: { opId, kind: "retirement" } });
  expect(await end(owner, instanceId)).toEqual(expected);
});

it("makes a gate that never was, retired, so that an early prepare cannot open one", async () => {
  const person = await space.person("alice", { scope: ["supervise"] });
  const manager = await space.manager(person, { upTo: "none" });
  const { instanceId } = manager;
  await assigned(person.owner, instanceId);
  const opId = instanceEndOpId(instanceId);
  const expected = { opId, retired: true, revokedRows: 0, evictedPrincipals: [], evictionVerified: true };
  expect(await end(person.owner, instanceId)).toMatchObject(expected);
  expect(await stored(space, gateKeyOf(manager))).toEqual({
    state: "retired",
    op: { opId, kind: "retirement" },
    generation: 0,
    processEpoch: 0,
    registrationRevision: 0,
    nameAuthorityRevision: 0,
    principal: principalOf(person.owner, Actor.parse(`manager_serve_${instanceId}`)),
  });
  expect(await stored(space, stageRows.key({ opId }))).toMatchObject({ phase: "finished" });
  expect(await end(person.owner, instanceId)).toMatchObject(expected);
  await unchanged(space, "failed-precondition", () => manager.prepare());
});

describe("is refused, with nothing written,", () => {
  const refused = (code: ErrorCode, owner: Owner, instanceId: Uid) =>
    unchanged(space, code, () => end(owner, instanceId));

  it("where no supervisor was assigned (check 1)", async () => {
    const owner = freshOwner();
    const { instanceId } = await instance(space, owner);
    await refused("not-found", owner, instanceId);
    await refused("not-found", owner, newUid(systemPorts));
    const platform = platformArgs();
    await space.operator.call(platformAssign, platform);
    await refused("not-found", owner, platform.instanceId);
  });

  it("for another owner, and over another's gate (check 2)", async () => {
    const owner = freshOwner();
    const of = await instance(space, owner);
    await assigned(owner, of.instanceId);
    await refused("permission-denied", freshOwner(), of.instanceId);
    const gateless = newUid(systemPorts);
    await assigned(owner, gateless);
    await refused("permission-denied", freshOwner(), gateless);
    const principal = principalOf(freshOwner(), Actor.parse(`manager_serve_${of.instanceId}`));
    await during(space, gateKeyOf(of), { principal }, () => refused("permission-denied", owner, of.instanceId));
  });

  it("while the assignment stands (check 3)", async () => {
    const owner = freshOwner();
    const { instanceId } = await instance(space, owner);
    await assigned(owner, instanceId, "assigned");
    await refused("failed-precondition", owner, instanceId);
  });

  it("for one that another operation ended, or holds (check 4)", async () => {
    const owner = freshOwner();
    const of = await instance(space, owner);
    await assigned(owner, of.instanceId);
    const op = { opId: newUid(systemPorts), kind: "retirement" as const };
    await during(space, gateKeyOf(of), { state: "retired", op }, () => refused("conflict", owner, of.instanceId));
    await during(space, gateKeyOf(of), { state: "frozen", op }, () => refused("conflict", owner, of.instanceId));
  });

  it("where the assignment is garbled", async () => {
    const owner = freshOwner();
    const { instanceId } = await instance(space, owner);
    const subject = `$KV.cotal_auth_${space.space}.${assignmentRows.key({ instanceId }).key}`;
    await space.roots.authority.request(subject, "{", { timeout: 5_000 });
    await refused("internal", owner, instanceId);
  });

  it("to anybody but the operator", async () => {
    const owner = freshOwner();
    const { instanceId } = await instance(space, owner);
    await assigned(owner, instanceId);
    const caller = await provisioned(space, "platform_host");
    await unchanged(space, "permission-denied", () =>
      space.clientAs(caller).call(supervisorEnd, { requestId: requestId(), owner, instanceId }, { once: true }),
    );
  });
});
