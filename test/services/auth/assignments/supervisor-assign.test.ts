import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { platformAssign } from "../../../../shared/contracts/auth/assignments/platform-assign.ts";
import { supervisorAssign } from "../../../../shared/contracts/auth/assignments/supervisor-assign.ts";
import { Owner, type Uid } from "../../../../shared/tokens.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { assignmentOf, platformArgs, type SupervisorArgs, supervisorArgs } from "./assigned.ts";
import { assign as assignOf, itAssigns, type Kind } from "./assigning.ts";

const owner = Owner.parse(`u_${"s".repeat(26)}`);
const DAY_MS = 86_400_000;

let space: TestSpace;
beforeAll(async () => {
  space = await startSpace({ services: ["auth"] });
});
afterAll(() => space.stop());

const kind: Kind = {
  operation: supervisorAssign,
  ended: "ended",
  space: () => space,
  args: async () => supervisorArgs(owner),
  end,
};
const assign = (args: SupervisorArgs) => assignOf(kind, args);

async function end(instanceId: Uid): Promise<void> {
  const row = await assignmentOf(space, instanceId);
  if (row?.kind !== "platform-supervisor") throw new Error("not assigned");
  const { lifecycleUid, expiresAt, assignmentRevision: expectedRevision } = row;
  await assign(supervisorArgs(owner, { instanceId, lifecycleUid, expiresAt, expectedRevision, state: "ended" }));
}

itAssigns(kind);

describe("an assignment to a supervisor", () => {
  it("has the one scope and its end", async () => {
    const args = supervisorArgs(owner);
    const { expiresAt } = args;
    expect(await assign(args)).toMatchObject({ kind: "platform-supervisor", scope: ["supervise"], expiresAt });
    const longer = { ...args, expectedRevision: 1, expiresAt: expiresAt + DAY_MS };
    expect(await assign(longer)).toMatchObject({ expiresAt: longer.expiresAt });
  });

  it("ends more than 5 s and at most 30 days ahead, while it is assigned (check 3)", async () => {
    for (const aheadMs of [-1, 0, 4_000, 30 * DAY_MS + 10_000]) {
      const args = supervisorArgs(owner, { expiresAt: Date.now() + aheadMs });
      await unchanged(space, "bad-request", () => assign(args));
    }
    await assign(supervisorArgs(owner, { expiresAt: Date.now() + 8_000 }));
    const args = supervisorArgs(owner, { expiresAt: Date.now() + 30 * DAY_MS - 1_000 });
    await assign(args);
    const past = { ...args, expectedRevision: 1, state: "ended" as const, expiresAt: 1 };
    expect(await assign(past)).toMatchObject({ state: "ended", expiresAt: 1 });
  });

  it("never changes into the platform's, nor back (check 1)", async () => {
    const args = supervisorArgs(owner);
    await assign(args);

    const { instanceId, lifecycleUid } = args;
    const other = platformArgs({ instanceId, lifecycleUid, expectedRevision: 1 });
    await unchanged(space, "conflict", () => space.operator.call(platformAssign, other, { once: true }));
  });
});
