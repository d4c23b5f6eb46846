/** Servers that stop in the middle: a commit is all or nothing, and what is not known is said (state §8.6, pitfalls 15). */
import { afterEach, describe, expect, it } from "vitest";
import { isAuthorityError } from "../../shared/errors.ts";
import { gateRows } from "../../shared/rows/gate.ts";
import { uidRows } from "../../shared/rows/uid.ts";
import { create, swap } from "../../shared/store/message.ts";
import type { Uid } from "../../shared/tokens.ts";
import { type Broker, startBroker } from "../kit/broker.ts";
import { startCluster } from "../kit/cluster.ts";
import { ACTOR, freshUid, frozenGate, OWNER, openGate, PRINCIPAL } from "../kit/rows.ts";
import { openStore, streamName, type TestStore } from "../kit/store.ts";

const reservation = { owner: OWNER, actor: ACTOR, mintedBy: PRINCIPAL };
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function onServer(): Promise<{ broker: Broker; on: TestStore }> {
  const broker = await startBroker();
  closing.push(() => broker.stop());
  const on = await openStore(broker.url);
  closing.push(() => on.close());
  return { broker, on };
}

/** The outcome of a commit that failed, or the revisions of one that did not. */
const endOf = (commit: Promise<number[]>): Promise<number[] | string> =>
  commit.catch((error: unknown) => {
    if (isAuthorityError(error) && error.outcome) return `${error.code} ${error.outcome}`;
    throw error;
  });

type Pair = readonly [Uid, Uid];

const commitPair = (on: TestStore, pair: Pair, ms: number): Promise<number[] | string> =>
  endOf(
    on.store.commit(
      pair.map((uid) => create(uidRows.key({ uid }), reservation)),
      on.work(ms),
    ),
  );

/** The revisions of those of the two rows that exist. */
async function readPair(on: TestStore, pair: Pair): Promise<number[]> {
  const rows = await Promise.all(pair.map((uid) => on.store.read(uidRows.key({ uid }))));
  return rows.flatMap((row) => row?.revision ?? []);
}

describe("a server that is paused", () => {
  it("leaves the outcome unknown at the deadline; the row may land afterwards", async () => {
    const { broker, on } = await onServer();
    const key = uidRows.key({ uid: freshUid() });
    await broker.kill("SIGSTOP");
    const work = on.work(400);
    expect(await endOf(on.store.commit([create(key, reservation)], work))).toBe("unavailable unknown");
    expect(work.effects.outcome).toBe("unknown");
    await broker.kill("SIGCONT");
    await expect.poll(() => on.store.read(key), { timeout: 5_000 }).toBeDefined();
  });

  it("is asked again with the same bytes, and its first answer counts when the row reads back equal", async () => {
    const { broker, on } = await onServer();
    const uid = freshUid();
    const gate = { key: gateRows.key({ uid }), value: openGate(uid), revision: 0 };
    const [revision = 0] = await on.store.commit([create(gate.key, gate.value)], on.work());
    await broker.kill("SIGSTOP");
    const work = on.work(15_000);
    const committing = on.store.commit(
      [create(uidRows.key({ uid }), reservation), swap({ ...gate, revision }, frozenGate(uid))],
      work,
    );
    // By then the first attempt has been given up and sent again: both are waiting in the server's socket.
    setTimeout(() => void broker.kill("SIGCONT"), 2_700);
    const revisions = await committing;
    const rows = await Promise.all([on.store.read(uidRows.key({ uid })), on.store.read(gate.key)]);
    expect(revisions).toEqual(rows.map((row) => row?.revision));
    expect(rows[1]?.value.state).toBe("frozen");
  });
});

describe("a server that is killed", () => {
  it("keeps every acknowledged commit, whole, and no part of another", async () => {
    const { broker, on } = await onServer();
    const pairs = Array.from({ length: 60 }, () => [freshUid(), freshUid()] as const);
    const commits = pairs.map((pair) => commitPair(on, pair, 20_000));
    await commits[10];
    await broker.restart();
    const ends = await Promise.all(commits);
    for (const [index, pair] of pairs.entries()) {
      const revisions = await readPair(on, pair);
      expect([0, 2]).toContain(revisions.length);
      if (Array.isArray(ends[index])) expect(revisions).toEqual(ends[index]);
    }
    expect(ends.filter(Array.isArray).length).toBeGreaterThan(10);
  });
});

describe("a cluster that loses its leader", () => {
  it("commits again once another leads, each commit once and whole", { timeout: 40_000 }, async () => {
    const cluster = await startCluster();
    closing.push(() => cluster.stop());
    const asking = await openStore(cluster.urls);
    closing.push(() => asking.close());
    for (const signal of ["SIGKILL", "SIGSTOP"] as const) {
      const lost = cluster.named(await leader(asking));
      // Elsewhere than on the server that goes: how fast a client leaves a paused one is not the store's concern.
      const on = await openStore(
        cluster.urls.filter((url) => url !== lost.url),
        { streams: [] },
      );
      closing.push(() => on.close());
      const pairs = Array.from({ length: 30 }, () => [freshUid(), freshUid()] as const);
      const commits = pairs.map((pair) => commitPair(on, pair, 20_000));
      await commits[5];
      await lost.kill(signal);
      const ends = await Promise.all(commits);
      if (signal === "SIGKILL") await lost.restart();
      else await lost.kill("SIGCONT");
      for (const [index, pair] of pairs.entries()) {
        const revisions = () => readPair(on, pair);
        await expect.poll(revisions, { timeout: 10_000 }).toEqual(ends[index]);
      }
    }
  });
});

const leader = async (on: TestStore): Promise<string> => {
  const { cluster } = await on.api(`STREAM.INFO.${streamName("auth", on.space)}`);
  return cluster?.leader ?? "";
};
