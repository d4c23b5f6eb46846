/** What both doors refuse and do alike (operations §11). */
import { describe, expect, it } from "vitest";
import { platformAssign } from "../../../../shared/contracts/auth/assignments/platform-assign.ts";
import { supervisorAssign } from "../../../../shared/contracts/auth/assignments/supervisor-assign.ts";
import { managerRenew } from "../../../../shared/contracts/auth/manager/renew.ts";
import type { Operation } from "../../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { assignmentRows } from "../../../../shared/rows/assignment.ts";
import { epCredRows } from "../../../../shared/rows/credential.ts";
import { managerRows } from "../../../../shared/rows/manager.ts";
import { Actor, type Principal } from "../../../../shared/tokens.ts";
import type { TestManager } from "../../../kit/manager.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { during, frozen, gateKeyOf, MANAGER, provisioned, stored } from "../scene.ts";
import { assignmentOf, type Door, doorArgs, platformArgs, supervisorArgs, through } from "./assigned.ts";

export interface Scene {
  readonly door: Door;
  /** Registered and activated under its assignment. */
  readonly manager: TestManager;
}

export const prepareOf = (manager: TestManager) => ({
  ...manager.envelope(),
  kind: "manager-service-authority",
  operation: "prepare",
});
export const renewOf = (manager: TestManager) => {
  const { accountPublicKey: _a, processEpoch: _e, ...rest } = manager.proven();
  return { ...rest, kind: "manager-service-authority", operation: "renew" };
};

/** The rows of an instance, by role, of those that are active. */
export async function rowsOf({ space }: Door, { instanceId }: TestManager) {
  const { entries } = await space.store.scan(epCredRows, { endpoint: MANAGER, instanceId });
  return entries.map(({ value }) => value).filter(({ state }) => state === "active");
}

export function itIsADoor(operation: Operation, scene: () => Scene): void {
  const refused = (code: ErrorCode, request: object, change: object = {}) =>
    unchanged(scene().door.space, code, () => through(scene().door, request, change));

  describe(`${operation.name}, as both`, () => {
    it("is the host's alone (C2)", async () => {
      const { door, manager } = scene();
      const { space } = door;
      const args = (await doorArgs(door, renewOf(manager))) as never;
      for (const caller of [
        await provisioned(space, "operator"),
        await provisioned(space, "gateway_loopback"),
        { ...(await provisioned(space, "platform_host")), uid: newUid(systemPorts) },
        { owner: manager.person.owner, actor: Actor.parse(`manager_${manager.instanceId}`), uid: manager.uid },
        { owner: manager.person.owner, actor: Actor.parse("cli"), uid: newUid(systemPorts) },
      ]) {
        await unchanged(space, "permission-denied", () => space.clientAs(caller).call(operation, args, { once: true }));
      }
    });

    it("has closed arguments of its own, its space, and no place for a login", async () => {
      const { door, manager } = scene();
      const request = renewOf(manager);
      await refused("bad-request", request, { actor: "cli" });
      await refused("bad-request", request, { idpToken: "x" });
      await refused("bad-request", { ...request, idpToken: "x" });
      await refused("bad-request", request, { assignmentRevision: 0 });
      await refused("permission-denied", request, { space: "another" });
      await unchanged(door.space, "permission-denied", () => through(door, request, {}, { auth: "x" }));
    });

    it("holds the inner request to its own schema", async () => {
      const request = renewOf(scene().manager);
      await refused("bad-request", { ...request, more: 1 });
      await refused("bad-request", { ...request, registrationProof: "sha256:x" });
      const { requestId: _, ...short } = request;
      await refused("bad-request", short);
    });

    it("makes the inner request's common checks from C4 on", async () => {
      const request = renewOf(scene().manager);
      const { identities } = request;
      await refused("bad-request", { ...request, identities: { ...identities, serve: identities.executor } });
      await refused("permission-denied", { ...request, space: "another" });
    });

    it("is for the data account (check 2)", async () => {
      const accountPublicKey = createKeyPair("account").public;
      await refused("permission-denied", renewOf(scene().manager), { accountPublicKey });
    });

    it("wants an assignment that stands exactly so (check 3)", async () => {
      const { door, manager } = scene();
      const { space } = door;
      const request = renewOf(manager);
      const key = assignmentRows.key(manager);
      const row = await stored(space, key);
      await refused("permission-denied", request, { assignmentRevision: row.assignmentRevision + 1 });
      await refused("permission-denied", { ...request, instanceId: newUid(systemPorts) });
      await refused("permission-denied", { ...request, managerLifecycleUid: newUid(systemPorts) });
      const account = createKeyPair("account").public as typeof row.accountPublicKey;
      await during(space, key, { accountPublicKey: account }, () => refused("permission-denied", request));
      const ended = row.kind === "platform-control" ? { state: "revoked" as const } : { state: "ended" as const };
      await during(space, key, ended, () => refused("permission-denied", request));
    });

    it("wants the assignment's lifecycle of an instance that nobody prepared before (check 3)", async () => {
      const { door, manager } = scene();
      const unprepared = { ...prepareOf(manager), instanceId: newUid(systemPorts) };
      const row = await stored(door.space, assignmentRows.key(manager));
      const { instanceId } = unprepared;
      await door.space.put(assignmentRows.key({ instanceId }), { ...row, instanceId });
      const managerLifecycleUid = newUid(systemPorts);
      await refused("permission-denied", { ...unprepared, managerLifecycleUid });
    });

    it("wants a gate that exists to be the assignment's (check 4)", async () => {
      const { door, manager } = scene();
      const principal = `u_${"b".repeat(26)}.manager_serve_${manager.instanceId}` as Principal;
      await during(door.space, gateKeyOf(manager), { principal }, () => refused("permission-denied", renewOf(manager)));
    });

    it("leaves R to the inner operation", async () => {
      const { door, manager } = scene();
      const request = renewOf(manager);
      await refused("permission-denied", { ...request, registrationProof: manager.declaration() });
      await during(door.space, gateKeyOf(manager), frozen(), () => refused("failed-precondition", request));
    });

    it("issues under the assignment, whoever asks: the host, or the manager on its own connection", async () => {
      const { door, manager } = scene();
      const { space } = door;
      const { assignmentRevision } = await stored(space, assignmentRows.key(manager));
      const grantedBy = { kind: "assignment", instanceId: manager.instanceId, assignmentRevision };
      expect((await stored(space, managerRows.key(manager))).grantedBy).toEqual(grantedBy);
      const before = (await rowsOf(door, manager)).length;
      const answer = await through(door, renewOf(manager));
      expect(answer).toMatchObject({ operation: "renew", owner: door.owner, actor: "cli" });
      await manager.client.call(managerRenew, renewOf(manager) as never);
      const rows = await rowsOf(door, manager);
      expect(rows.length).toBe(before + 4);
      expect(rows.map((row) => row.grantedBy)).toEqual(rows.map(() => grantedBy));
    });
  });

  describe(`${operation.name}, while the assignment moves`, () => {
    it("issues nothing once the end is written while it signs", async () => {
      const { door, manager } = scene();
      const { space } = door;
      const row = await stored(space, assignmentRows.key(manager));
      const pause = pauseCommit(`epcred.manager.${manager.instanceId}.`);
      const late = through(door, renewOf(manager)).catch((error: { code: string }) => error.code);
      await pause.reached;
      const state = row.kind === "platform-control" ? ("revoked" as const) : ("ended" as const);
      await space.put(assignmentRows.key(manager), { ...row, state } as typeof row);
      await space.put(gateKeyOf(manager), await stored(space, gateKeyOf(manager)));
      const before = (await rowsOf(door, manager)).length;
      pause.resume();
      expect(await late).toBe("permission-denied");
      expect((await rowsOf(door, manager)).length).toBe(before);
      await space.put(assignmentRows.key(manager), row);
    });

    it("issues nothing after a newer revision until the instance is prepared again", async () => {
      const { door, manager } = scene();
      const { space } = door;
      const row = await assignmentOf(space, manager.instanceId);
      if (!row) throw new Error("not assigned");
      const { instanceId, lifecycleUid, owner, assignmentRevision: expectedRevision } = row;
      const again = { instanceId, lifecycleUid, owner, expectedRevision };
      await (row.kind === "platform-control"
        ? space.operator.call(platformAssign, platformArgs(again))
        : space.operator.call(supervisorAssign, supervisorArgs(owner, { ...again, expiresAt: row.expiresAt })));
      await refused("permission-denied", renewOf(manager));
      await refused("permission-denied", renewOf(manager), { assignmentRevision: expectedRevision });
      await through(door, prepareOf(manager));
      await through(door, renewOf(manager));
    });
  });
}
