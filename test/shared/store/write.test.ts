import { headers } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isAuthorityError } from "../../../shared/errors.ts";
import { credRows } from "../../../shared/rows/credential.ts";
import { gateRows } from "../../../shared/rows/gate.ts";
import { uidRows } from "../../../shared/rows/uid.ts";
import { create, fenced, type Message, swap, touch } from "../../../shared/store/message.ts";
import { subjectOf } from "../../../shared/store/streams.ts";
import { CommitLost, lostOn } from "../../../shared/store/write.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { ACTOR, freshUid, frozenGate, OWNER, openGate, PRINCIPAL, rootCred } from "../../kit/rows.ts";
import { openStore, streamName, type TestStore } from "../../kit/store.ts";

let broker: Broker;
let on: TestStore;
beforeAll(async () => {
  broker = await startBroker();
  on = await openStore(broker.url);
});
afterAll(async () => {
  await on.close();
  await broker.stop();
});

const refused = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

async function gate() {
  const uid = freshUid();
  const key = gateRows.key({ uid });
  const [revision = 0] = await on.store.commit([create(key, openGate(uid))], on.work());
  return { uid, at: { key, value: openGate(uid), revision } };
}

const reservation = { owner: OWNER, actor: ACTOR, mintedBy: PRINCIPAL };

describe("a single write", () => {
  it("creates a row once", async () => {
    const { uid, at } = await gate();
    expect(await on.store.read(at.key)).toEqual({ key: at.key, value: openGate(uid), revision: at.revision });
    const error = await refused(on.store.commit([create(at.key, openGate(uid))], on.work()));
    expect(lostOn(error, at.key)).toBe(true);
  });

  it("swaps only over the revision that was read", async () => {
    const { uid, at } = await gate();
    const [next] = await on.store.commit([swap(at, frozenGate(uid))], on.work());
    expect(next).toBeGreaterThan(at.revision);
    const work = on.work();
    const error = await refused(on.store.commit([swap(at, frozenGate(uid))], work));
    expect(error).toBeInstanceOf(CommitLost);
    expect(error).toMatchObject({ code: "conflict", keys: [at.key.key], outcome: "not-executed" });
    expect(work.effects.outcome).toBe("not-executed");
  });

  it("is taken under a fence while the other row stands, and refused once it moved", async () => {
    const { uid, at } = await gate();
    const cred = rootCred(uid);
    const key = credRows.key({ uid, credentialId: cred.credentialId });
    await on.store.commit([fenced(key, cred, at)], on.work());
    await on.store.commit([touch(at)], on.work());
    const error = await refused(on.store.commit([fenced(key, cred, at)], on.work()));
    expect(lostOn(error, at.key)).toBe(true);
  });

  it("is fenced on absence with revision 0", async () => {
    const uid = freshUid();
    const fence = { key: gateRows.key({ uid }), revision: 0 };
    const cred = rootCred(uid);
    const key = credRows.key({ uid, credentialId: cred.credentialId });
    await on.store.commit([fenced(key, cred, fence)], on.work());
    await on.store.commit([create(fence.key, openGate(uid))], on.work());
    expect(lostOn(await refused(on.store.commit([fenced(key, cred, fence)], on.work())), fence.key)).toBe(true);
  });

  it("touches a row without changing a byte", async () => {
    const { at } = await gate();
    const before = await on.store.next("auth", at.key.key, at.revision);
    const [revision = 0] = await on.store.commit([touch(at)], on.work());
    const after = await on.store.next("auth", at.key.key, revision);
    expect(after?.body).toEqual(before?.body);
    expect(revision).toBeGreaterThan(at.revision);
  });

  it("is stored as RFC 8785 bytes", async () => {
    const { at } = await gate();
    const message = await on.store.next("auth", at.key.key, at.revision);
    expect(Buffer.from(message?.body ?? []).toString()).toBe(
      `{"generation":1,"lifecycleUid":"${at.value.lifecycleUid}","state":"open"}`,
    );
  });

  it("carries the remaining life where the row has one", async () => {
    const { uid, at } = await gate();
    const cred = rootCred(uid, { exp: Date.now() + 89_500 });
    const key = credRows.key({ uid, credentialId: cred.credentialId });
    const [revision = 0] = await on.store.commit([fenced(key, cred, at)], on.work());
    const message = await on.store.next("auth", key.key, revision);
    expect(message?.headers.get("Nats-TTL")).toBe("90s");
    expect((await on.store.next("auth", at.key.key, 1))?.headers.has("Nats-TTL")).toBe(false);
  });
});

describe("a row with a lifetime", () => {
  it("expires to true absence, also if it was written in a batch, and its key is free again", async () => {
    const { uid, at } = await gate();
    const cred = rootCred(uid, { exp: Date.now() + 900 });
    const key = credRows.key({ uid, credentialId: cred.credentialId });
    await on.store.commit([fenced(key, cred, at), create(uidRows.key({ uid }), reservation)], on.work());
    expect(await on.store.read(key)).toBeDefined();
    await expect.poll(() => on.store.read(key), { timeout: 5_000 }).toBeUndefined();
    await on.store.commit([create(key, cred)], on.work());
    expect(await on.store.read(uidRows.key({ uid }))).toBeDefined();
  });
});

describe("a batch", () => {
  it("gives consecutive revisions in the order of its messages", async () => {
    const uids = [freshUid(), freshUid(), freshUid()];
    const keys = uids.map((uid) => uidRows.key({ uid }));
    const revisions = await on.store.commit(
      keys.map((key) => create(key, reservation)),
      on.work(),
    );
    const read = await Promise.all(keys.map((key) => on.store.read(key)));
    expect(revisions).toEqual(read.map((entry) => entry?.revision));
    expect(revisions[2]).toBe((revisions[0] ?? 0) + 2);
  });

  it("is all or nothing, and names what it was lost on", async () => {
    const { uid, at } = await gate();
    await on.store.commit([touch(at)], on.work());
    const fresh = uidRows.key({ uid });
    const work = on.work();
    const error = await refused(on.store.commit([create(fresh, reservation), swap(at, frozenGate(uid))], work));
    expect(error).toMatchObject({ code: "conflict", keys: [at.key.key] });
    expect(await on.store.read(fresh)).toBeUndefined();
    expect(work.effects.outcome).toBe("not-executed");
  });

  it("may fence many messages on one row and then write that row", async () => {
    const { uid, at } = await gate();
    const other = freshUid();
    const message = fenced(uidRows.key({ uid: other }), reservation, at);
    await on.store.commit([message, fenced(uidRows.key({ uid }), reservation, at), touch(at)], on.work());
    expect(await on.store.read(uidRows.key({ uid: other }))).toBeDefined();
  });

  it("has up to 256 messages", async () => {
    const many = (count: number): Message[] =>
      Array.from({ length: count }, () => create(uidRows.key({ uid: freshUid() }), reservation));
    const revisions = await on.store.commit(many(256), on.work());
    expect(revisions).toHaveLength(256);
    expect(isAuthorityError(await refused(on.store.commit(many(257), on.work())), "internal")).toBe(true);
    expect(isAuthorityError(await refused(on.store.commit([], on.work())), "internal")).toBe(true);
  });

  it("refuses before sending: one row twice, a fence after its row, two streams", async () => {
    const { uid, at } = await gate();
    const key = uidRows.key({ uid });
    const before = await on.store.lastSeq("auth");
    for (const messages of [
      [create(key, reservation), create(key, reservation)],
      [touch(at), fenced(key, reservation, at)],
      [create(key, reservation), { ...create(key, reservation), stream: "records" as const, key: "a.b" }],
    ]) {
      expect(isAuthorityError(await refused(on.store.commit(messages, on.work())), "internal")).toBe(true);
    }
    expect(await on.store.lastSeq("auth")).toBe(before);
  });

  it("runs many at once, more than the broker takes in flight", async () => {
    const commits = Array.from({ length: 100 }, () => {
      const [a, b] = [freshUid(), freshUid()];
      return on.store.commit(
        [create(uidRows.key({ uid: a }), reservation), create(uidRows.key({ uid: b }), reservation)],
        on.work(20_000),
      );
    });
    const all = (await Promise.all(commits)).flat();
    expect(new Set(all).size).toBe(200);
  });
});

describe("a transition that no table has", () => {
  it("is refused before anything is sent", async () => {
    const { uid, at } = await gate();
    expect(() => swap(at, { ...openGate(uid), generation: 2 })).toThrow("internal error");
    expect(() => create(at.key, frozenGate(uid))).toThrow("internal error");
  });
});

describe("a lost time", () => {
  it("sends nothing after the deadline or once the work was given up", async () => {
    const uid = freshUid();
    const messages = [create(uidRows.key({ uid }), reservation)];
    expect(await refused(on.store.commit(messages, on.work(-1)))).toMatchObject({ code: "deadline-exceeded" });
    const given = { ...on.work(), signal: AbortSignal.abort() };
    expect(await refused(on.store.commit(messages, given))).toMatchObject({ code: "unavailable" });
    expect(await on.store.read(uidRows.key({ uid }))).toBeUndefined();
  });
});

describe("a refusal in passing", () => {
  /** One message of a batch of somebody else's. */
  const part = (id: string, sequence: number, more: Record<string, string> = {}) => {
    const all = headers();
    const said = { "Nats-Batch-Id": id, "Nats-Batch-Sequence": String(sequence), ...more };
    for (const [name, value] of Object.entries(said)) all.set(name, value);
    return { headers: all };
  };
  const subject = () => subjectOf("auth", on.space, `uid.${freshUid()}`);

  it("is tried again: too many batches in flight, until some of them are done", async () => {
    const ids = Array.from({ length: 50 }, () => freshUid());
    await Promise.all(ids.map((id) => on.connection.request(subject(), "{}", { ...part(id, 1), timeout: 5_000 })));
    const keys = [freshUid(), freshUid()].map((uid) => uidRows.key({ uid }));
    const messages = keys.map((key) => create(key, reservation));
    expect(await refused(on.store.commit(messages, on.work(400)))).toMatchObject({
      code: "unavailable",
      outcome: "not-executed",
      // Its first message met the limit (10210); the last one is then told of a batch that is not there.
      reason: expect.stringContaining("10176"),
    });
    const committing = on.store.commit(messages, on.work());
    for (const id of ids) on.connection.publish(subject(), "{}", part(id, 2, { "Nats-Batch-Commit": "1" }));
    expect(await committing).toHaveLength(2);
  });
});

describe("a refusal that is not about the row", () => {
  it("is unavailable, not a conflict, where the stream is full", async () => {
    const full = await openStore(broker.url, { space: "full", streams: [] });
    const stream = streamName("auth", full.space);
    const config = { name: stream, subjects: ["$KV.cotal_auth_full.>"], allow_atomic: true, max_msgs_per_subject: 1 };
    await full.api(`STREAM.CREATE.${stream}`, { ...config, discard: "new", max_bytes: 300, storage: "file" });
    const keys = Array.from({ length: 3 }, () => uidRows.key({ uid: freshUid() }));
    const ends = [];
    for (const key of keys) ends.push(await refused(full.store.commit([create(key, reservation)], full.work())));
    expect(ends.at(-1)).toMatchObject({ code: "unavailable", outcome: "not-executed" });
    expect(ends.at(-1)).toMatchObject({ reason: expect.stringContaining("10077") });
    await full.close();
  });

  it("is not executed where the stream takes no batches, and unknown where nobody answers", async () => {
    const none = await openStore(broker.url, { space: "none", streams: [] });
    const messages = [freshUid(), freshUid()].map((uid) => create(uidRows.key({ uid }), reservation));
    expect(await refused(none.store.commit(messages, none.work(400)))).toMatchObject({ outcome: "unknown" });
    const stream = streamName("auth", none.space);
    await none.api(`STREAM.CREATE.${stream}`, { name: stream, subjects: ["$KV.cotal_auth_none.>"] });
    const end = await refused(none.store.commit(messages, none.work()));
    expect(end).toMatchObject({ code: "unavailable", outcome: "not-executed" });
    await none.close();
  });
});
