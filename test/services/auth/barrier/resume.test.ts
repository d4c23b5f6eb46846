/** What the holder of the claim finds when it has won: it finishes what was begun, and leaves alone what no rule moves (lifecycles §5). */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { leftAlone } from "../../../../services/auth/barrier/metrics.ts";
import { actorList } from "../../../../shared/contracts/auth/actors/actor-list.ts";
import { BARRIER } from "../../../../shared/limits.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { type Gate, gateRows } from "../../../../shared/rows/gate.ts";
import { headRows } from "../../../../shared/rows/head.ts";
import { type Stage, stageRows } from "../../../../shared/rows/stage.ts";
import { subjectOf } from "../../../../shared/store/streams.ts";
import { Owner, type Uid } from "../../../../shared/tokens.ts";
import type { Host } from "../../../kit/hosting.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { instance } from "../assignments/instances.ts";
import { type Lifecycle, lifecycle, requestId, rowsOf, stageOf } from "../lifecycles.ts";
import { MANAGER, stored } from "../scene.ts";

const ports = systemPorts;
/** What the callout may still admit need not be waited for. */
const owner = Owner.parse("local");

let space: TestSpace;
beforeAll(async () => {
  space = await startSpace({ services: ["custodian"], authTimeoutS: 1 });
});
afterAll(() => space.stop());

/** Frozen for its retirement at that time; `change` makes of it what no commit would. */
async function begun(at: number, change: { stage?: Partial<Stage>; gate?: Partial<Gate> } = {}): Promise<Lifecycle> {
  const of = await lifecycle(space, { owner, kind: "interactive" });
  const { actor, uid, opId } = of;
  const op = { opId, kind: "retirement" as const };
  const head = await stored(space, headRows.key({ owner, actor }));
  await space.put(headRows.key({ owner, actor }), { ...head, state: "retiring", op });
  await space.put(gateRows.key({ uid }), {
    lifecycleUid: uid,
    state: "frozen",
    generation: 1,
    op,
    ...change.gate,
  });
  await space.put(stageRows.key({ opId }), { ...stageOf(of), at, ...change.stage });
  return of;
}

const counted = async (): Promise<Record<string, number>> => {
  const { values } = await leftAlone.get();
  return Object.fromEntries(values.map(({ labels, value }) => [labels.reason, value]));
};

const about = (host: Host, opId: string) =>
  host.lines
    .map((line) => JSON.parse(line))
    .filter((line) => line.msg === "left alone" && JSON.stringify(line).includes(opId));

it("ends every retirement, the oldest first, and touches nothing that contradicts itself", async () => {
  const youngest = await begun(1_000);
  const older = await Promise.all(Array.from({ length: BARRIER.atOnce }, (_, at) => begun(at + 1)));
  const garbled = newUid(ports);
  await space.roots.authority.request(subjectOf("auth", space.space, `stage.${garbled}`), "{", { timeout: 5_000 });
  const open = await begun(1, { gate: { state: "retired" } });
  const further = await begun(1, { gate: { generation: 2 } });
  const takeover = { opId: newUid(ports), kind: "takeover" as const };
  const foreign = await begun(1, { stage: { kind: "takeover" }, gate: { op: takeover } });
  const { instanceId } = await instance(space, owner);
  const registering = newUid(ports);
  await space.put(stageRows.key({ opId: registering }), {
    ...(await stored(space, stageRows.key({ opId: youngest.opId }))),
    opId: registering,
    kind: "registration",
    gate: `epgate.${MANAGER}.${instanceId}`,
  });
  const left = [open.opId, further.opId, foreign.opId, registering];
  const revisions = () =>
    Promise.all(left.map(async (opId) => (await space.store.read(stageRows.key({ opId: opId as Uid })))?.revision));
  const before = { rows: await revisions(), counts: await counted() };

  const begins: string[] = [];
  const host = await space.host(["auth"], () => ({
    afterStep: async ({ kind, opId, step }) => {
      if (kind === "retirement" && step === "touch") begins.push(opId);
    },
  }));
  for (const of of [youngest, ...older]) {
    await vi.waitFor(async () => expect((await rowsOf(space, of)).head?.state).toBe("retired"), {
      timeout: 15_000,
      interval: 20,
    });
  }
  expect(begins.indexOf(youngest.opId)).toBe(BARRIER.atOnce); // no place was free for it before

  expect(await revisions()).toEqual(before.rows);
  expect(about(host, garbled)[0]).toMatchObject({ reason: "unreadable", key: `stage.${garbled}` });
  for (const { opId } of [open, further]) expect(about(host, opId)[0]).toMatchObject({ reason: "contradiction" });
  expect(about(host, foreign.opId)[0]).toMatchObject({ reason: "other-kind", opKind: "takeover" });
  expect(about(host, registering)).toEqual([]); // the instance's own, or a repair's
  const counts = await counted();
  for (const reason of ["unreadable", "contradiction", "other-kind"]) {
    expect(counts[reason], reason).toBeGreaterThan(before.counts[reason] ?? 0);
  }
  expect(host.service("auth").ready()).toBe(true);
  expect((await space.operator.call(actorList, { requestId: requestId(), owner })).actors.length).toBeGreaterThan(0);
});
