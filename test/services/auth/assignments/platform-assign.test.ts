import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { platformAssign } from "../../../../shared/contracts/auth/assignments/platform-assign.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { currentRows } from "../../../../shared/rows/assignment.ts";
import type { Uid } from "../../../../shared/tokens.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { stored } from "../scene.ts";
import { assignmentOf, type PlatformArgs, platformArgs } from "./assigned.ts";
import { assign as assignOf, itAssigns, type Kind } from "./assigning.ts";

let space: TestSpace;
beforeAll(async () => {
  space = await startSpace({ services: ["auth"] });
});
afterAll(() => space.stop());

const kind: Kind = {
  operation: platformAssign,
  ended: "revoked",
  space: () => space,
  args: async () => platformArgs(),
  end: revoke,
};
const assign = (args: PlatformArgs) => assignOf(kind, args);

async function revoke(instanceId: Uid): Promise<void> {
  const row = await assignmentOf(space, instanceId);
  if (!row) throw new Error("not assigned");
  const { owner, lifecycleUid, assignmentRevision: expectedRevision } = row;
  await assign(platformArgs({ owner, instanceId, lifecycleUid, expectedRevision, state: "revoked" }));
}

itAssigns(kind);

describe("an assignment to the platform", () => {
  it("becomes the account's current one in the same commit", async () => {
    const args = platformArgs({ predecessorInstanceId: newUid(systemPorts) });
    const assignment = await assign(args);
    expect(assignment).toMatchObject({ kind: "platform-control", predecessorInstanceId: args.predecessorInstanceId });
    expect(await stored(space, currentRows.key({}))).toEqual({
      v: 1,
      instanceId: args.instanceId,
      assignmentRevision: 1,
    });
    await assign({ ...args, expectedRevision: 1 });
    expect((await stored(space, currentRows.key({}))).assignmentRevision).toBe(2);
    await revoke(args.instanceId);
    expect((await stored(space, currentRows.key({}))).assignmentRevision).toBe(3);
  });

  it("waits until the one before is revoked (check 3)", async () => {
    const [first, second] = [platformArgs(), platformArgs()];
    await assign(first);
    await unchanged(space, "failed-precondition", () => assign(second));
    await unchanged(space, "failed-precondition", () => assign({ ...second, state: "revoked" }));
    await revoke(first.instanceId);
    await assign(second);
    expect((await stored(space, currentRows.key({}))).instanceId).toBe(second.instanceId);
    await revoke(second.instanceId);
  });

  it("is one alone where two are written at once", async () => {
    const [first, second] = [platformArgs(), platformArgs()];
    const pause = pauseCommit(`assignment.${first.instanceId}`);
    const late = assign(first).catch((error: { code: string }) => error.code);
    await pause.reached;
    await assign(second);
    pause.resume();
    expect(await late).toBe("failed-precondition");
    expect(await assignmentOf(space, first.instanceId)).toBeUndefined();
    await revoke(second.instanceId);
  });
});
