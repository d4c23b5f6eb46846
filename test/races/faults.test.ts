/** Servers that stop in the middle: a commit is all or nothing, and what is not known is said (state §8.6, pitfalls 15). */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { isAuthorityError } from "../../shared/errors.ts";
import { gateRows } from "../../shared/rows/gate.ts";
import { uidRows } from "../../shared/rows/uid.ts";
import { create, swap } from "../../shared/store/message.ts";
import type { Uid } from "../../shared/tokens.ts";
import { type Broker, startBroker } from "../kit/broker.ts";
import { type Cluster, startCluster } from "../kit/cluster.ts";
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

describe("a cluster", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster.stop());

  /** A store on the servers other than one: how fast a client leaves a paused server is not the store's concern. */
  const besides = async (server: Broker): Promise<TestStore> => {
    const urls = cluster.urls.filter((url) => url !== server.url);
    const on = await openStore(urls);
    closing.push(() => on.close());
    return on;
  };

  it("that loses its leader commits again once another leads, each commit once and whole", {
    timeout: 40_000,
  }, async () => {
    for (const signal of ["SIGKILL", "SIGSTOP"] as const) {
      const asking = await openStore(cluster.urls);
      const lost = cluster.named(await leader(asking));
      await asking.close();
      const on = await besides(lost);
      const pairs = Array.from({ length: 30 }, () => [freshUid(), freshUid()] as const);
      const commits = pairs.map((pair) => commitPair(on, pair, 20_000));
      await commits[5];
      await lost.kill(signal);
      const ends = await Promise.all(commits);
      if (signal === "SIGKILL") await lost.restart();
      else await lost.kill("SIGCONT");
      for (const [index, pair] of pairs.entries()) {
        await expect.poll(() => readPair(on, pair), { timeout: 10_000 }).toEqual(ends[index]);
      }
    }
  });

  it("with a follower that trails gives a scan every row that was acknowledged before it", async () => {
    const asking = await openStore(cluster.urls);
    const leads = await leader(asking);
    await asking.close();
    const follower = cluster.brokers.find(({ name }) => name !== leads);
    if (!follower) throw new Error("no follower");
    const on = await besides(follower);
    const before = (await on.store.scan(uidRows, {})).entries.length;
    await follower.kill("SIGSTOP");
    for (let n = 0; n < 20; n += 1) await commitPair(on, [freshUid(), freshUid()], 10_000);
    await follower.kill("SIGCONT");
    for (let n = 0; n < 15; n += 1) {
      expect((await on.store.scan(uidRows, {}, on.work(8_000))).entries).toHaveLength(before + 40);
    }
  });
});

const leader = async (on: TestStore): Promise<string> => {
  const { cluster } = await on.api(`STREAM.INFO.${streamName("auth", on.space)}`);
  return cluster?.leader ?? "";
};
