import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { managerScanGoals } from "../../../../shared/contracts/auth/agents/scan-goals.ts";
import { supervisorAuthority } from "../../../../shared/contracts/auth/assignments/supervisor-authority.ts";
import { decodeJwt } from "../../../../shared/credentials/jwt.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { assignmentRows } from "../../../../shared/rows/assignment.ts";
import { Owner } from "../../../../shared/tokens.ts";
import type { TestManager } from "../../../kit/manager.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { during, proven } from "../scene.ts";
import { assignedManager, type Door, through } from "./assigned.ts";
import { itIsADoor, prepareOf, renewOf, rowsOf } from "./doors.ts";

const STANDING_S = 86_400;
const ENDS_IN_MS = 600_000;

let space: TestSpace;
let door: Door;
let manager: TestManager;
let expiresAt: number;
beforeAll(async () => {
  space = await startSpace({ services: ["auth"], change: () => ({ standingTtlS: STANDING_S }) });
  const owner = Owner.parse(`u_${"s".repeat(26)}`);
  door = { space, host: await space.client("platform_host"), kind: "supervisor", owner };
  expiresAt = Date.now() + ENDS_IN_MS;
  manager = await assignedManager(door, { assign: { expiresAt } });
});
afterAll(() => space.stop());

const refused = (code: ErrorCode, request: object, change: object = {}) =>
  unchanged(space, code, () => through(door, request, change));
const standing = () => {
  const { accountPublicKey, processEpoch, ...rest } = manager.proven();
  return {
    ...rest,
    accountPublicKey,
    processEpoch,
    kind: "manager-service-authority",
    operation: "renewStandingBundle",
  };
};

itIsADoor(supervisorAuthority, () => ({ door, manager }));

describe("a supervisor's door", () => {
  it("admits four operations of the service authority, under the actor cli (check 1)", async () => {
    await through(door, prepareOf(manager));
    await through(door, standing());
    await refused("permission-denied", { ...renewOf(manager), actor: "alice" });
    for (const operation of ["session", "transferReader", "retire", "renewRunDriver", "unheard-of"]) {
      await refused("permission-denied", { ...renewOf(manager), operation });
    }
    for (const kind of [
      "manager-goal-index-scan",
      "manager-run-admission",
      "manager-managed-agent-enrollment",
      "manager-service-maintenance",
      "unheard-of",
    ]) {
      await refused("permission-denied", { ...renewOf(manager), kind });
    }
    await refused("permission-denied", {}, { request: null });
  });

  it("names the owner of the assignment (check 3)", async () => {
    await refused("permission-denied", renewOf(manager), { owner: `u_${"b".repeat(26)}` });
  });

  it("closes 5 s before the assignment ends (check 4)", async () => {
    const key = assignmentRows.key(manager);
    for (const ahead of [4_500, 0, -1]) {
      await during(space, key, { expiresAt: Date.now() + ahead } as never, () => refused("expired", renewOf(manager)));
    }
  });

  it("gives no credential that outlives the assignment, however long they stand otherwise", async () => {
    const answers = [await through(door, prepareOf(manager)), await through(door, standing())] as {
      expiresAt: number;
      credentials: Record<string, { jwt: string; exp: number }>;
    }[];
    for (const { expiresAt: smallest, credentials } of answers) {
      const ends = Object.values(credentials).map(({ jwt, exp }) => {
        expect(decodeJwt(jwt).exp).toBe(exp);
        return exp;
      });
      expect(Math.max(...ends) * 1_000).toBeLessThanOrEqual(expiresAt);
      expect(smallest).toBe(Math.min(...ends) * 1_000);
    }
    const rows = await rowsOf(door, manager);
    expect(rows.every(({ exp }) => exp <= expiresAt)).toBe(true);
    expect(rows.some(({ exp }) => exp > expiresAt - 2_000)).toBe(true);
  });

  it("lets the manager itself ask for no more than it does", async () => {
    const args = proven(manager, "manager-goal-index-scan");
    await unchanged(space, "permission-denied", () => manager.client.call(managerScanGoals, args, { once: true }));
  });
});
