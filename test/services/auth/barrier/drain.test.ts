import { pino } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { drain } from "../../../../services/auth/barrier/drain.ts";
import type { Retiring } from "../../../../services/auth/barrier/retirement.ts";
import { digestOf } from "../../../../shared/canonical.ts";
import { AuthorityError } from "../../../../shared/errors.ts";
import { BARRIER } from "../../../../shared/limits.ts";
import { systemPorts } from "../../../../shared/ports.ts";
import { epCredRows } from "../../../../shared/rows/credential.ts";
import { type EpGate, epGateRows } from "../../../../shared/rows/gate.ts";
import type { SelfObligation } from "../../../../shared/rows/mesh/obligation.ts";
import { type Owner, Principal } from "../../../../shared/tokens.ts";
import { type Broker, startBroker } from "../../../kit/broker.ts";
import { freshUid, MANAGER, serveCred } from "../../../kit/rows.ts";
import { openStore, type TestStore } from "../../../kit/store.ts";
import { Asked, CALLER_OWNER, makeFacts, OTHER, retiring, TARGET_OWNER } from "./obligations.ts";

let broker: Broker;
let store: TestStore;
let target: Retiring;
let lines: string[];
let spaces = 0;

beforeAll(async () => {
  broker = await startBroker();
});
afterAll(() => broker.stop());
beforeEach(async () => {
  spaces += 1;
  store = await openStore(broker.url, { space: `drain${spaces}`, streams: ["auth", "records"] });
  await makeFacts(store);
  target = retiring();
  lines = [];
});
afterEach(() => store.close());

const ask = () => new Asked(store, target);

/** What blocks it, or nothing once it is drained. */
async function draining() {
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
  const context = { store: store.store, ports: systemPorts, log };
  try {
    await drain(context, { retiring: target, hold: (work) => work() }, store.work());
    return undefined;
  } catch (error) {
    if (!(error instanceof AuthorityError)) throw error;
    expect(error).toMatchObject({ code: "unavailable", outcome: "unknown" });
    return error.details[0];
  }
}

const blockedBy = (asked: Asked, state: string, route?: string) => ({
  kind: "ai.cotal.auth.drain-blocked",
  opId: target.opId,
  rows: [{ key: asked.key.key, state, ...(route === undefined ? {} : { route }) }],
  more: 0,
});

const self = (asked: Asked, more: Partial<SelfObligation> = {}): SelfObligation => ({
  state: "accepted",
  opId: target.opId,
  policyRevision: 1,
  decision: "self",
  commitKey: `lease.manager.${asked.id}`,
  commitBaseRevision: 0,
  commitDigest: digestOf({ decided: true }),
  commitValue: { enc: "b64u", bytes: "e30" },
  ...more,
});

const record = (asked: Asked, value: object) =>
  store.put("records", `lease.manager.${asked.id}`, JSON.stringify(value));

it("of a lifecycle without obligations is done at once, whatever others have", async () => {
  const other = new Asked(store, retiring());
  await other.oblige(other.epf({ state: "accepted" }));
  expect(await draining()).toBeUndefined();
});

it("leaves what is settled as it is", async () => {
  const [one, other] = [ask(), ask()];
  const before = [
    await one.oblige(one.epf({ state: "rejected" })),
    await other.oblige(other.epf({ state: "terminal" })),
  ];
  expect(await draining()).toBeUndefined();
  expect([(await store.store.read(one.key))?.revision, (await store.store.read(other.key))?.revision]).toEqual(before);
});

it("gives up after 8 passes over rows that keep coming, and says which is left", async () => {
  let passes = 0;
  const log = pino({ level: "silent" });
  const hold = async <V>(scan: () => Promise<V>): Promise<V> => {
    passes += 1;
    const asked = ask();
    await asked.oblige(self(asked, { state: "provisional" }));
    return scan();
  };
  const context = { store: store.store, ports: systemPorts, log };
  const blocked = await drain(context, { retiring: target, hold }, store.work()).catch((error: unknown) => error);
  expect(passes).toBe(BARRIER.drainPasses);
  expect(blocked).toMatchObject({ code: "unavailable", details: [{ kind: "ai.cotal.auth.drain-blocked" }] });
});

describe("a provisional decision", () => {
  it("that is a record is rejected: the row itself is the decision", async () => {
    const asked = ask();
    await asked.oblige(self(asked, { state: "provisional" }));
    expect(await draining()).toBeUndefined();
    expect(await asked.row()).toEqual(self(asked, { state: "rejected" }));
  });

  it("that is a fact is rejected by the first fact, which is ours", async () => {
    const asked = ask();
    await asked.oblige(asked.epf({}));
    expect(await draining()).toBeUndefined();
    expect(await asked.row()).toEqual(asked.epf({ state: "rejected" }));
    expect(await asked.decision()).toEqual({
      ...asked.fact(),
      ts: expect.any(Number),
      decision: "rejected",
      error: { code: "expired" },
    });
  });

  it("that somebody rejected before is rejected", async () => {
    const asked = ask();
    await asked.oblige(asked.epf({}));
    await asked.decided(asked.fact({ decision: "rejected", error: { code: "denied" } }));
    expect(await draining()).toBeUndefined();
    expect((await asked.row())?.state).toBe("rejected");
    expect(await asked.decision()).toMatchObject({ error: { code: "denied" } });
  });

  it("that somebody accepted before is accepted, and then waits for its end", async () => {
    const asked = ask();
    await asked.oblige(asked.epf({}));
    await asked.decided(asked.accepted());
    expect(await draining()).toEqual(blockedBy(asked, "accepted", "effects"));
    await asked.effected(asked.fact({ outcome: "ran" }));
    expect(await draining()).toBeUndefined();
    expect(await asked.row()).toEqual(asked.epf({ state: "terminal" }));
  });

  it.each([
    ["another fingerprint", { fingerprint: OTHER }],
    ["another sequence", { sourceSeq: 8 }],
    ["another caller", { caller: { id: `${TARGET_OWNER}.cli`, lifecycleUid: "a".repeat(26) } }],
  ])("whose acceptance has %s stays as it is, with the contradiction in the log", async (_name, change) => {
    const asked = ask();
    await asked.oblige(asked.epf({}));
    await asked.decided(asked.accepted(change));
    expect(await draining()).toEqual(blockedBy(asked, "provisional", "effects"));
    expect(lines.join("")).toContain(asked.key.key);
  });

  it("waits where the mesh keeps no facts", async () => {
    await store.api(`STREAM.DELETE.EPF_${store.space}`);
    const asked = ask();
    await asked.oblige(asked.epf({}));
    expect(await draining()).toEqual(blockedBy(asked, "provisional", "effects"));
  });
});

describe("an accepted effect", () => {
  let asked: Asked;
  beforeEach(async () => {
    asked = ask();
    await asked.oblige(asked.epf({ state: "accepted" }));
    await asked.decided(asked.accepted());
  });

  it("waits while nothing proves its end", async () => {
    expect(await draining()).toEqual(blockedBy(asked, "accepted", "effects"));
  });

  it.each<[string, () => Promise<number>]>([
    ["its effect", () => asked.effected(asked.fact({ outcome: "ran" }))],
    [
      "its cancelled effect",
      () => asked.effected(asked.fact({ outcome: "cancelled", cancelled: { opId: "x", target: {} } })),
    ],
    ["its goal's result", () => asked.resulted(asked.fact({ goalId: asked.goalId, state: "failed" }))],
    [
      "its goal's tombstone",
      () =>
        asked.resulted({
          goalId: asked.goalId,
          fingerprint: (asked.fact() as { fingerprint: string }).fingerprint,
          state: "succeeded",
          outcomeDigest: OTHER,
        }),
    ],
  ])("is terminal with %s", async (_name, prove) => {
    await prove();
    expect(await draining()).toBeUndefined();
    expect(await asked.row()).toEqual(asked.epf({ state: "terminal" }));
  });

  it.each<[string, () => Promise<number>]>([
    ["an effect of another sequence", () => asked.effected(asked.fact({ outcome: "ran", sourceSeq: 8 }))],
    ["an effect of another fingerprint", () => asked.effected(asked.fact({ outcome: "ran", fingerprint: OTHER }))],
    ["an effect without outcome", () => asked.effected(asked.fact())],
    [
      "an effect that the broker answered",
      () => asked.effected(asked.fact({ outcome: "ran" }), { "Nats-Stream": "X" }),
    ],
    [
      "a result of another request",
      () => asked.resulted(asked.fact({ goalId: asked.goalId, state: "failed", id: "other" })),
    ],
    [
      "a tombstone of another request",
      () => asked.resulted({ goalId: asked.goalId, fingerprint: OTHER, state: "succeeded", outcomeDigest: OTHER }),
    ],
  ])("waits in spite of %s", async (_name, pretend) => {
    await pretend();
    expect(await draining()).toEqual(blockedBy(asked, "accepted", "effects"));
    expect(await asked.row()).toEqual(asked.epf({ state: "accepted" }));
  });
});

describe("accepted work of a pool", () => {
  it("is terminal with its pool's fact, and no other pool's", async () => {
    const asked = ask();
    await asked.oblige(asked.epf({ state: "accepted", route: "pool.gpu" }));
    await asked.pooled("cpu", asked.fact({ outcome: "done" }));
    expect(await draining()).toEqual(blockedBy(asked, "accepted", "pool.gpu"));
    await asked.pooled("gpu", asked.fact({ outcome: "done" }));
    expect(await draining()).toBeUndefined();
  });

  it("waits in spite of a fact of another sequence", async () => {
    const asked = ask();
    await asked.oblige(asked.epf({ state: "accepted", route: "pool.gpu" }));
    await asked.pooled("gpu", asked.fact({ outcome: "done", sourceSeq: 8 }));
    expect(await draining()).toEqual(blockedBy(asked, "accepted", "pool.gpu"));
  });
});

describe("an accepted record", () => {
  it("is terminal once it stands as decided", async () => {
    const asked = ask();
    const base = await record(asked, { decided: true });
    await asked.oblige(self(asked, { commitBaseRevision: base }));
    expect(await draining()).toBeUndefined();
    expect(await asked.row()).toEqual(self(asked, { state: "terminal", commitBaseRevision: base }));
  });

  it("is terminal once a later write superseded it", async () => {
    const asked = ask();
    const base = await record(asked, { before: true });
    await record(asked, { after: true });
    await asked.oblige(self(asked, { commitBaseRevision: base }));
    expect(await draining()).toBeUndefined();
  });

  it("waits at its base, in its absence, and where it is unreadable", async () => {
    const [atBase, absent, unreadable] = [ask(), ask(), ask()];
    await atBase.oblige(self(atBase, { commitBaseRevision: await record(atBase, { before: true }) }));
    await absent.oblige(self(absent));
    await unreadable.oblige(self(unreadable));
    await store.put("records", `lease.manager.${unreadable.id}`, "", { "KV-Operation": "DEL" });
    expect(await draining()).toMatchObject({
      rows: [atBase, absent, unreadable].map(({ key }) => ({ key: key.key, state: "accepted" })),
    });
  });

  it("of a key that is none waits", async () => {
    const asked = ask();
    await asked.oblige(self(asked, { commitKey: "lease.*" }));
    expect(await draining()).toEqual(blockedBy(asked, "accepted"));
  });
});

describe("work that nobody is left to end", () => {
  let asked: Asked;
  beforeEach(async () => {
    asked = ask();
    await asked.oblige(asked.epf({ state: "accepted" }));
  });

  async function instance(owner: Owner | "local", more: Partial<EpGate> = {}) {
    const instanceId = freshUid();
    const gate: EpGate = {
      state: "retired",
      op: { opId: freshUid(), kind: "retirement" },
      generation: 1,
      processEpoch: 0,
      registrationRevision: 1,
      nameAuthorityRevision: 0,
      principal: Principal.parse(`${owner}.manager_serve_${instanceId}`),
      ...more,
    };
    const key = epGateRows.key({ endpoint: MANAGER, instanceId });
    await store.put("auth", key.key, JSON.stringify(gate));
    return instanceId;
  }

  it.each([["the target's"], ["the caller's"], ["the space's own"]])(
    "is abandoned once %s only instance is retired",
    async (whose) => {
      await instance(whose === "the target's" ? TARGET_OWNER : whose === "the caller's" ? CALLER_OWNER : "local");
      expect(await draining()).toBeUndefined();
      expect(await asked.row()).toEqual(asked.epf({ state: "terminal", outcome: "abandoned" }));
    },
  );

  it("waits where no instance could have served it", async () => {
    await instance(`u_${"z".repeat(26)}` as Owner);
    expect(await draining()).toEqual(blockedBy(asked, "accepted", "effects"));
  });

  it("waits while another instance that could is not retired", async () => {
    await instance(TARGET_OWNER);
    await instance(CALLER_OWNER, { state: "frozen" });
    expect(await draining()).toEqual(blockedBy(asked, "accepted", "effects"));
  });

  it("waits while a credential of the instance is good for the broker, revoked or not", async () => {
    const instanceId = await instance(TARGET_OWNER);
    const value = serveCred(instanceId, { state: "revoked", exp: Date.now() + 60_000 });
    const key = epCredRows.key({ endpoint: MANAGER, instanceId, credentialId: value.credentialId });
    await store.put("auth", key.key, JSON.stringify(value));
    expect(await draining()).toEqual(blockedBy(asked, "accepted", "effects"));
    await store.put("auth", key.key, JSON.stringify({ ...value, exp: Date.now() - 1 }));
    expect(await draining()).toBeUndefined();
  });

  it("waits where a gate is unreadable", async () => {
    await instance(TARGET_OWNER);
    await store.put("auth", `epgate.manager.${freshUid()}`, "{");
    expect(await draining()).toEqual(blockedBy(asked, "accepted", "effects"));
  });

  it("is never a provisional decision: that is rejected", async () => {
    await instance(TARGET_OWNER);
    await asked.oblige(asked.epf({}));
    expect(await draining()).toBeUndefined();
    expect((await asked.row())?.state).toBe("rejected");
  });
});

describe("an unreadable obligation", () => {
  it.each([
    ["no JSON", "{", {}],
    ["a marker", "", { "KV-Operation": "DEL" }],
    [
      "the broker's answer",
      JSON.stringify({ state: "terminal", outcome: "abandoned", opId: "x" }),
      { "Nats-Stream": "X" },
    ],
  ])("that is %s stays pending, its key in the log, while others are settled", async (_name, body, headers) => {
    const [broken, whole] = [ask(), ask()];
    await store.put("records", broken.key.key, body, headers as Record<string, string>);
    await whole.oblige(whole.epf({}));
    expect(await draining()).toEqual(blockedBy(broken, "unreadable"));
    expect((await whole.row())?.state).toBe("rejected");
    expect(lines.join("")).toContain(broken.key.key);
  });
});

it("tells of unreadable obligations in one line, however many there are", async () => {
  const many = Array.from({ length: 12 }, () => ask());
  for (const { key } of many) await store.put("records", key.key, "{");
  const before = lines.length;
  const detail = await draining();
  expect(detail).toMatchObject({ kind: "ai.cotal.auth.drain-blocked" });
  const told = lines.slice(before).map((line) => JSON.parse(line));
  expect(told).toMatchObject([{ level: 50, msg: "unreadable obligations", more: 4 }]);
  expect(told[0].keys).toHaveLength(8);
});

it("names as many rows as a reply has room for, and counts the others", async () => {
  for (let count = 0; count < 12; count += 1) {
    const asked = ask();
    await asked.oblige(asked.epf({ state: "accepted" }));
  }
  const detail = await draining();
  if (detail?.kind !== "ai.cotal.auth.drain-blocked") return expect.unreachable();
  expect(detail.rows.length).toBeGreaterThan(0);
  expect(detail.rows.length + detail.more).toBe(12);
  expect(JSON.stringify([detail]).length).toBeLessThan(2_048);
});
