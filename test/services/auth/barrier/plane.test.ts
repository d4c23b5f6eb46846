import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { releaseClaim, tryClaim } from "../../../../services/auth/barrier/claim.ts";
import type { Held } from "../../../../services/auth/barrier/held.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import { isAuthorityError, unavailable } from "../../../../shared/errors.ts";
import { type Tuple, tupleOf } from "../../../../shared/nats/connect.ts";
import { type Plane, planeRows } from "../../../../shared/rows/plane.ts";
import { stageRows } from "../../../../shared/rows/stage.ts";
import { create, fenced, swap } from "../../../../shared/store/message.ts";
import { lostOn } from "../../../../shared/store/write.ts";
import { type Broker, startBroker } from "../../../kit/broker.ts";
import { freshUid, PRINCIPAL } from "../../../kit/rows.ts";
import { openStore, type TestStore } from "../../../kit/store.ts";
import { custodian, ports, Replica, type Word } from "./replica.ts";

const KEY = planeRows.key({});
const WITHIN = { timeout: 5_000, interval: 10 };

let broker: Broker;
let store: TestStore;
let word: Word;
/** Connections that the custodian proves gone, whatever else it says. */
let gone: Tuple[];
const replicas: Replica[] = [];
let spaces = 0;

beforeAll(async () => {
  broker = await startBroker();
});
afterAll(() => broker.stop());
beforeEach(async () => {
  word = "unknown";
  gone = [];
  spaces += 1;
  store = await openStore(broker.url, { space: `plane${spaces}`, streams: ["auth"] });
});
afterEach(async () => {
  await Promise.all(replicas.splice(0).map((replica) => replica.stop(store)));
  await store.close();
});

async function start(): Promise<Replica> {
  const replica = await Replica.start(broker, store, says);
  replicas.push(replica);
  return replica;
}

const says = (ledger: Tuple): Word => (gone.some(({ userNkey }) => userNkey === ledger.userNkey) ? "gone" : word);

const plane = async (): Promise<Plane | undefined> => (await store.store.read(KEY))?.value;
const winning = (replica: Replica, wins = 1) =>
  vi.waitFor(() => {
    expect(replica.won.length).toBeGreaterThanOrEqual(wins);
    return replica.won.at(-1) as Held;
  }, WITHIN);
const refused = (replica: Replica, reason: string) =>
  vi.waitFor(() => expect(replica.plane.reason).toBe(reason), WITHIN);

/** Writes the row as somebody else would. */
async function overwrite(change: Partial<Plane>): Promise<void> {
  const row = await store.store.read(KEY);
  if (!row) throw new Error("no plane row");
  await store.store.commit([swap({ key: KEY, revision: row.revision }, { ...row.value, ...change })], store.work());
}

describe("a replica", () => {
  it("claims at generation 1, under the tuple of its scan connection and an id that names it", async () => {
    const replica = await start();
    await winning(replica);
    expect(await plane()).toEqual({
      v: 1,
      generation: 1,
      claimId: expect.stringMatching(new RegExp(`^${replica.instanceId}\\.3\\.[a-z0-9]{26}$`)),
      state: "held",
      ledger: replica.tuple,
      records: replica.tuple,
      openedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
    expect(replica.plane.reason).toBeUndefined();
    expect(replica.asked).toEqual([]);
  });

  it("stands by while another one lives, and follows once that gives the claim up", async () => {
    const first = await start();
    await winning(first);
    word = "live";
    const second = await start();
    await refused(second, "live-peer");
    expect(second.lines.join("")).toContain((await plane())?.claimId);
    await first.plane.release(async () => store.store);
    expect((await winning(second)).entry.value).toMatchObject({ generation: 2, state: "held", ledger: second.tuple });
  });

  it.each<[string, Word]>([
    ["nobody knows", "unknown"],
    ["of one of its connections nobody knows", ["gone", "unknown"]],
    ["the custodian cannot be asked", unavailable("nobody serves")],
  ])("never takes the claim while %s, and does on proof", async (_name, doubt) => {
    const first = await start();
    const { entry } = await winning(first);
    word = doubt;
    const second = await start();
    await refused(second, "unknown");
    await vi.waitFor(() => expect(second.asked.length).toBeGreaterThan(3), WITHIN);
    expect((await store.store.read(KEY))?.revision).toBe(entry.revision);
    expect(second.lines.join("")).not.toMatch(/stop|kill|terminate/i);
    word = "live";
    gone = [entry.value.ledger];
    expect((await winning(second)).entry.value.generation).toBe(2);
    expect(second.asked.at(-1)).toEqual(entry.value.ledger);
  });

  it("takes the claim the moment it is given up, though it waits for a custodian that does not answer", async () => {
    const first = await start();
    await winning(first);
    word = "silence";
    const second = await start();
    await vi.waitFor(() => expect(second.asked.length).toBeGreaterThan(0), WITHIN);
    expect(second.plane.reason).toBe("unknown");
    await first.plane.release(async () => store.store);
    expect((await winning(second)).entry.value).toMatchObject({ generation: 2, ledger: second.tuple });
  });

  it.each([
    ["a marker", { "KV-Operation": "DEL" }, ""],
    ["garbled", {}, "{"],
  ])("leaves a row that is %s as it is", async (_name, headers, body) => {
    const at = await store.put("auth", "plane", body, headers as Record<string, string>);
    const replica = await start();
    await refused(replica, "corrupt");
    expect(await store.store.inspect(KEY)).toMatchObject({ state: "unreadable", revision: at });
    expect(replica.won).toEqual([]);
  });

  it("is fenced with its scan connection, and claims again on proof that this is gone", async () => {
    const replica = await start();
    const held = await winning(replica);
    const { tuple } = replica;
    word = "gone";
    await replica.endScan();
    expect(held.signal.aborted).toBe(true);
    expect(held.reason).toBe("fenced");
    await refused(replica, "fenced");
    await replica.openScan();
    const again = await winning(replica, 2);
    expect(replica.asked.at(-1)).toEqual(tuple);
    expect(again.entry.value).toMatchObject({ generation: 2, ledger: replica.tuple });
    await expect(held.hold(async () => "believed")).rejects.toMatchObject({ code: "unavailable" });
  });

  it("loses the claim with the row, and the broker refuses what it still commits", async () => {
    const replica = await start();
    const held = await winning(replica);
    word = "live";
    await overwrite({ claimId: "another", generation: 2 });
    await vi.waitFor(() => expect(held.reason).toBe("lost"), WITHIN);
    await refused(replica, "live-peer");
    const opId = freshUid();
    const late = store.store.commit([fenced(stageRows.key({ opId }), stage(opId), held.entry)], store.work());
    await late.then(
      () => expect.unreachable(),
      (error: unknown) => expect(lostOn(error, KEY)).toBe(true),
    );
    expect(await store.store.read(stageRows.key({ opId }))).toBeUndefined();
  });

  it("believes nothing that it learned while the row moved", async () => {
    const replica = await start();
    const held = await winning(replica);
    word = "live";
    const learned = held.hold(async () => {
      await overwrite({ claimId: "another", generation: 2 });
      return "learned";
    });
    await expect(learned).rejects.toMatchObject({
      code: "unavailable",
      outcome: "unknown",
      details: [{ kind: "ai.cotal.auth.plane-claim-refused", reason: "lost" }],
    });
  });
});

describe("a release", () => {
  it("waits for a step's end, closes the scan connection, then gives the row up; a repeat finds it done", async () => {
    const replica = await start();
    const held = await winning(replica);
    const order: string[] = [];
    replica.idle = async () => {
      expect(() => held.proceed()).toThrow();
      order.push(held.signal.aborted ? "aborted" : "idle");
    };
    await replica.plane.release(async () => {
      order.push(replica.closed ? "closed" : "open");
      return store.store;
    });
    expect(order).toEqual(["idle", "closed"]);
    expect(await plane()).toMatchObject({ state: "released", generation: 1, claimId: held.entry.value.claimId });
    const before = await store.store.lastSeq("auth");
    await replica.plane.release(async () => store.store);
    expect(await store.store.lastSeq("auth")).toBe(before);
  });

  it("stops what does not end by itself", async () => {
    const replica = await start();
    const held = await winning(replica);
    replica.idle = () => new Promise(() => {});
    await replica.plane.release(async () => store.store);
    expect(held.signal.aborted).toBe(true);
    expect((await plane())?.state).toBe("released");
  });

  it("that is not confirmed rejects, and may be repeated", async () => {
    const replica = await start();
    await winning(replica);
    const nothing = async () => {
      throw unavailable("no connection");
    };
    await expect(replica.plane.release(nothing)).rejects.toMatchObject({ code: "unavailable" });
    expect(replica.plane.reason).toBe("release-unreachable");
    expect((await plane())?.state).toBe("held");
    await replica.plane.release(async () => store.store);
    expect((await plane())?.state).toBe("released");
    expect(replica.plane.reason).toBe("released");
  });

  it("of a row that is another's by now changes nothing", async () => {
    const replica = await start();
    const held = await winning(replica);
    await overwrite({ claimId: "another", generation: 2 });
    expect(await releaseClaim(store.store, held.entry, store.work())).toBe("lost");
    expect(await plane()).toMatchObject({ claimId: "another", state: "held" });
  });
});

describe("one try for the claim", () => {
  const claimant = () => ({ claimId: "mine", tuple: tupleOf(store.connection, createKeyPair("user").public) });
  const claiming = (commit: TestStore["store"]["commit"]) => ({
    store: { read: store.store.read.bind(store.store), commit },
    peers: custodian(says),
    ports,
  });

  it("is `concurrent` once two swaps are lost", async () => {
    await store.put("auth", "plane", JSON.stringify({ ...(await released()) }));
    const losing = claiming(async (messages, work) => {
      await overwrite({});
      return store.store.commit(messages, work);
    });
    expect(await tryClaim(losing, claimant(), store.work())).toEqual({ refused: "concurrent" });
    expect((await plane())?.state).toBe("released");
  });

  it("succeeds where only its answer was lost", async () => {
    const silent = claiming(async (messages, work) => {
      await store.store.commit(messages, work);
      throw unavailable("no answer", undefined, "unknown");
    });
    const attempt = await tryClaim(silent, claimant(), store.work());
    expect(attempt).toMatchObject({ claim: { value: { claimId: "mine", state: "held", generation: 1 } } });
  });

  it("is won by an earlier one of the same connection that landed late, whoever lives", async () => {
    const of = claimant();
    const claimId = "instance.3.earlier";
    const [revision] = await store.store.commit(
      [create(KEY, { ...(await released()), state: "held", claimId, ledger: of.tuple, records: of.tuple })],
      store.work(),
    );
    word = "live";
    const again = await tryClaim(
      claiming((messages, work) => store.store.commit(messages, work)),
      { ...of, claimId: "instance.3.later" },
      store.work(),
    );
    expect(again).toMatchObject({ claim: { revision, value: { claimId } } });
  });

  it("fails where nothing was written", async () => {
    const broken = claiming(async () => {
      throw unavailable("no answer", undefined, "unknown");
    });
    const error = await tryClaim(broken, claimant(), store.work()).catch((thrown: unknown) => thrown);
    expect(isAuthorityError(error, "unavailable")).toBe(true);
  });

  async function released(): Promise<Plane> {
    const tuple = claimant().tuple;
    return {
      v: 1,
      generation: 4,
      claimId: "former",
      state: "released",
      ledger: tuple,
      records: tuple,
      openedAt: "then",
    };
  }
});

const stage = (opId: ReturnType<typeof freshUid>) => ({
  v: 1 as const,
  opId,
  kind: "retirement" as const,
  gate: `gate.${opId}`,
  fromGeneration: 1,
  principal: PRINCIPAL,
  evicted: [],
  startedBy: "test",
  at: 1,
  phase: "frozen" as const,
});
