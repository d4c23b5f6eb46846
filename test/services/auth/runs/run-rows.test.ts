import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { AuthContext } from "../../../../services/auth/context.ts";
import { instanceKeys, rowsOfRun } from "../../../../services/auth/runs/run-rows.ts";
import { STORE } from "../../../../shared/limits.ts";
import { systemPorts } from "../../../../shared/ports.ts";
import { type EpCred, epCredRows } from "../../../../shared/rows/credential.ts";
import type { Entry } from "../../../../shared/rows/family.ts";
import { create, swap } from "../../../../shared/store/message.ts";
import type { RunId, Uid } from "../../../../shared/tokens.ts";
import { ownWork } from "../../../../shared/work.ts";
import { type Ground, startGround } from "../../../kit/ground.ts";
import { freshRunId } from "../../../kit/manager.ts";
import { freshUid, MANAGER, serveCred } from "../../../kit/rows.ts";

let ground: Ground;
let context: AuthContext;
beforeAll(async () => {
  ground = await startGround();
  context = { store: ground.store } as AuthContext;
});
afterAll(() => ground.stop());

const work = () => ownWork(systemPorts, 10_000);

async function write(instanceId: Uid, more: Partial<EpCred> = {}): Promise<Entry<EpCred>> {
  const value = serveCred(freshUid(), more);
  const key = epCredRows.key({ endpoint: MANAGER, instanceId, credentialId: value.credentialId });
  const [revision = 0] = await ground.store.commit([create(key, value)], work());
  return { key, value, revision };
}
/** Driver and mediator, as an attempt makes them. */
const pair = async (instanceId: Uid, runId: RunId) => [
  await write(instanceId, { role: "runDriver", runId }),
  await write(instanceId, { role: "runMediator", runId }),
];

async function find(instanceId: Uid, runId: RunId, own: readonly Entry<EpCred>[] = []) {
  const visit = { context, work: work() };
  const read = vi.spyOn(ground.store, "read");
  const rows = await rowsOfRun(visit, instanceId, runId, await instanceKeys(visit, instanceId), own);
  const reads = read.mock.calls.length;
  read.mockRestore();
  return { reads, rows: rows.sort((one, other) => one.revision - other.revision) };
}

it("finds the rows of a run as they stand, and reads those of others once", async () => {
  const instanceId = freshUid();
  const [runId, another] = [freshRunId(), freshRunId()];
  const rows = await pair(instanceId, runId);
  await pair(instanceId, another);
  await write(instanceId);
  await pair(freshUid(), runId);
  expect(await find(instanceId, runId)).toEqual({ rows, reads: 5 });
  const revoked: Entry<EpCred>[] = [];
  for (const row of rows) {
    const value = { ...row.value, state: "revoked" as const };
    const [revision = 0] = await ground.store.commit([swap(row, value)], work());
    revoked.push({ ...row, value, revision });
  }
  expect(await find(instanceId, runId)).toEqual({ rows: revoked, reads: 2 });
});

it("finds what another process wrote meanwhile, and leaves out what this one did", async () => {
  const instanceId = freshUid();
  const runId = freshRunId();
  const own = await pair(instanceId, runId);
  expect(await find(instanceId, runId, own)).toEqual({ rows: [], reads: 0 });
  const foreign = await pair(instanceId, runId);
  await write(instanceId);
  expect(await find(instanceId, runId, own)).toEqual({ rows: foreign, reads: 3 });
  expect(await find(instanceId, runId)).toEqual({ rows: [...own, ...foreign], reads: 4 });
});

it("reads so many side by side, and no more", async () => {
  const instanceId = freshUid();
  const runId = freshRunId();
  await Promise.all(Array.from({ length: 60 }, () => pair(instanceId, runId)));
  const { read } = ground.store;
  let [running, most] = [0, 0];
  const counted = vi.spyOn(ground.store, "read").mockImplementation(async (...given) => {
    running += 1;
    most = Math.max(most, running);
    return read.apply(ground.store, given).finally(() => {
      running -= 1;
    });
  });
  const visit = { context, work: work() };
  const rows = await rowsOfRun(visit, instanceId, runId, await instanceKeys(visit, instanceId), []);
  counted.mockRestore();
  expect(rows).toHaveLength(120);
  expect(most).toBe(STORE.readsAtOnce);
});

it("looks again at a pair that it saw half of", async () => {
  const instanceId = freshUid();
  const runId = freshRunId();
  const visit = { context, work: work() };
  const rows = [await write(instanceId, { role: "runDriver", runId })];
  const half = await instanceKeys(visit, instanceId);
  rows.push(await write(instanceId, { role: "runMediator", runId }));
  const found = await rowsOfRun(visit, instanceId, runId, half, []);
  expect(found.sort((one, other) => one.revision - other.revision)).toEqual(rows);
});

it("forgets what has lapsed, and refuses what it cannot read", async () => {
  const instanceId = freshUid();
  const runId = freshRunId();
  const single = await write(instanceId, { role: "runDriver", runId, exp: Date.now() + 1 });
  expect((await find(instanceId, runId)).rows).toEqual([single]);
  await vi.waitFor(async () => expect(await find(instanceId, runId)).toEqual({ rows: [], reads: 0 }), 5_000);
  const subject = `$KV.cotal_auth_${ground.space}.epcred.manager.${instanceId}.sha256-${"0".repeat(64)}`;
  await ground.roots.authority.request(subject, "{}", { timeout: 5_000 });
  await expect(find(instanceId, runId)).rejects.toMatchObject({ code: "internal" });
});
