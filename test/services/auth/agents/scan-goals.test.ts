import { headers } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { managerScanGoals } from "../../../../shared/contracts/auth/agents/scan-goals.ts";
import { MANAGER as LIMITS } from "../../../../shared/limits.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { type GoalIndex, goalIndexRows } from "../../../../shared/rows/mesh/goal.ts";
import { EnvelopeId, type Owner } from "../../../../shared/tokens.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { refusesStrangers, refusesUnregistered } from "../manager-refusals.ts";
import { MANAGER, proven, provenEcho, type Scene, startScene } from "../scene.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await startScene();
});
afterAll(() => scene.space.stop());

const argsOf = (manager: Scene["manager"]) => proven(manager, "manager-goal-index-scan");
const scan = (args = argsOf(scene.manager)) => scene.manager.client.call(managerScanGoals, args, { once: true });

const goal = (owner: Owner, goalId: string): GoalIndex => ({
  v: 1,
  endpoint: MANAGER,
  owner,
  actor: scene.person.actor,
  uid: scene.person.uid,
  goalId: EnvelopeId.parse(goalId),
  iid: scene.manager.instanceId,
});
const subjectOf = (entry: GoalIndex): string =>
  `$KV.cotal_records_${scene.space.space}.${goalIndexRows.key(entry).key}`;

refusesStrangers(() => scene, managerScanGoals, argsOf);
refusesUnregistered(() => scene, managerScanGoals, argsOf);

describe("a scan of goals", () => {
  it("lists every entry of the owner, by key, and no other's", async () => {
    const { space, person, manager } = scene;
    expect((await scan()).entries).toEqual([]);
    const other = await space.person("bob");
    const own = [goal(person.owner, "one"), { ...goal(person.owner, "two"), allocated: true, note: "late" }];
    for (const entry of [...own.toReversed(), goal(other.owner, "three")]) {
      await space.put(goalIndexRows.key(entry), entry);
    }
    const request = argsOf(manager);
    expect(await scan(request)).toEqual({ ...provenEcho(manager, request), entries: own });
    expect(await person.ask(managerScanGoals, request)).toEqual(await scan(request));
  });

  it("fails as a whole for one entry that names another key, is garbled or deleted (check 2)", async () => {
    const { space, person } = scene;
    const at = goal(person.owner, "bad");
    const foreign = `u_${"b".repeat(26)}`;
    for (const body of [
      { ...at, owner: foreign },
      { ...at, endpoint: "another" },
      { ...at, uid: newUid(systemPorts) },
      { ...at, more: 1 },
      7,
    ]) {
      await space.roots.space.request(subjectOf(at), JSON.stringify(body));
      await unchanged(space, "internal", scan);
    }
    const deleted = headers();
    deleted.set("KV-Operation", "DEL");
    await space.roots.space.request(subjectOf(at), "", { headers: deleted, timeout: 5_000 });
    await unchanged(space, "internal", scan);
    await space.put(goalIndexRows.key(at), at);
    await scan();
  });

  it("refuses more entries than an answer may hold (check 3)", async () => {
    const { space, person } = scene;
    const write = (entry: GoalIndex) =>
      space.roots.space.request(subjectOf(entry), JSON.stringify(entry), { timeout: 20_000 });
    const crowd = Array.from({ length: LIMITS.goalEntries }, (_, n) => goal(person.owner, `crowd-${n}`));
    await Promise.all(crowd.map(write));
    await unchanged(space, "resource-exhausted", scan);
  });
});
