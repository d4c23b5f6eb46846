import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STORE } from "../../../shared/limits.ts";
import { assignmentRows } from "../../../shared/rows/assignment.ts";
import { credRows } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import type { Gate } from "../../../shared/rows/gate.ts";
import { gateRows } from "../../../shared/rows/gate.ts";
import { type Obligation, obligationRows } from "../../../shared/rows/mesh/obligation.ts";
import { serviceSpecRows, serviceStatusRows } from "../../../shared/rows/service.ts";
import { uidRows } from "../../../shared/rows/uid.ts";
import { create, fenced, touch } from "../../../shared/store/message.ts";
import { subjectOf } from "../../../shared/store/streams.ts";
import { EnvelopeId } from "../../../shared/tokens.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { ACTOR, freshUid, MANAGER, OWNER, openGate, PRINCIPAL, rootCred } from "../../kit/rows.ts";
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

async function gates(count: number): Promise<Entry<Gate>[]> {
  const keys = Array.from({ length: count }, () => {
    const uid = freshUid();
    return { key: gateRows.key({ uid }), value: openGate(uid) };
  });
  const entries: Entry<Gate>[] = [];
  for (let from = 0; from < count; from += STORE.maxBatch) {
    const part = keys.slice(from, from + STORE.maxBatch);
    const messages = part.map(({ key, value }) => create(key, value));
    const revisions = await on.store.commit(messages, on.work());
    entries.push(...part.map((row, index) => ({ ...row, revision: revisions[index] ?? 0 })));
  }
  return entries;
}

const keysOf = (entries: readonly { key: { key: string } }[]): string[] => entries.map(({ key }) => key.key).sort();

describe("a scan", () => {
  it("finds every row under a prefix, and no other", async () => {
    const [uid, other] = [freshUid(), freshUid()];
    for (const lifecycle of [uid, other]) {
      const cred = rootCred(lifecycle);
      const key = credRows.key({ uid: lifecycle, credentialId: cred.credentialId });
      await on.store.commit([fenced(key, cred, { key: gateRows.key({ uid: lifecycle }), revision: 0 })], on.work());
    }
    const { entries, corrupt } = await on.store.scan(credRows, { uid });
    expect(entries.map(({ value }) => value.lifecycleUid)).toEqual([uid]);
    expect(corrupt).toEqual([]);
    expect((await on.store.scan(credRows, { uid: freshUid() })).entries).toEqual([]);
  });

  it("returns the whole of more rows than one pull brings, and leaves no consumer", async () => {
    const written = await gates(600);
    const { entries } = await on.store.scan(gateRows, {});
    expect(keysOf(entries)).toEqual(expect.arrayContaining(keysOf(written)));
    const { consumers } = await on.api(`CONSUMER.NAMES.${streamName("auth", on.space)}`, {});
    expect(consumers).toEqual([]);
  });

  it("returns the full set while its rows are overwritten, to each of several readers", async () => {
    const written = await gates(512);
    let going = true;
    const overwrite = (async () => {
      for (let round = 0; going; round += 1) {
        const entry = written[round % written.length];
        if (!entry) break;
        const [revision = 0] = await on.store.commit([touch(entry)], on.work());
        written[round % written.length] = { ...entry, revision };
      }
    })();
    const scans = await Promise.all(Array.from({ length: 6 }, () => on.store.scan(gateRows, {})));
    going = false;
    await overwrite;
    for (const { entries, corrupt } of scans) {
      expect(keysOf(entries)).toEqual(expect.arrayContaining(keysOf(written)));
      expect(new Set(keysOf(entries)).size).toBe(entries.length);
      expect(corrupt).toEqual([]);
    }
  });

  /** As anybody's own bytes may have it: a header block that no library would write. */
  async function publishRaw(subject: string, head: string, body: string): Promise<void> {
    const socket = connect(broker.port, "127.0.0.1");
    const lengths = `${head.length} ${head.length + body.length}`;
    socket.write(
      `CONNECT {"verbose":false,"headers":true}\r\nHPUB ${subject} ${lengths}\r\n${head}${body}\r\nPING\r\n`,
    );
    for await (const data of socket) if (String(data).includes("PONG")) break;
  }

  it.each([
    ["says that nothing is left", "NATS/1.0 404 No Messages\r\n\r\n", "row"],
    ["says that the time is over", "NATS/1.0 408 Request Timeout\r\n\r\n", "row"],
    ["says that something is wrong", "NATS/1.0 409 Consumer Deleted\r\n\r\n", "row"],
    ["nobody can read", "NATS/1.0\r\na b: c\r\n\r\n", "corrupt"],
    ["is all there is, and nobody can read", "NATS/1.0\r\na b: c\r\n\r\n", "corrupt", ""],
  ])("goes on behind a row whose header %s", async (_, head, counts, ...[bytes]) => {
    const target = freshUid();
    const value: Obligation = { state: "terminal", outcome: "abandoned", opId: target };
    const caller = { target, endpoint: MANAGER, owner: OWNER, actor: ACTOR, uid: target };
    const [odd, later] = ["odd", "later"].map((id) => obligationRows.key({ ...caller, id: EnvelopeId.parse(id) }));
    if (!odd || !later) return expect.unreachable();
    await publishRaw(subjectOf("records", on.space, odd.key), head, bytes ?? JSON.stringify(value));
    await on.store.commit([create(later, value)], on.work());
    const { entries, corrupt } = await on.store.scan(obligationRows, { target });
    expect(keysOf(entries)).toEqual((counts === "row" ? [odd.key, later.key] : [later.key]).sort());
    expect(corrupt).toEqual(counts === "row" ? [] : [odd.key]);
  });

  it("reports corrupt rows and returns all the others", async () => {
    const reservation = { owner: OWNER, actor: ACTOR, mintedBy: PRINCIPAL };
    const [good, marked, garbled] = [freshUid(), freshUid(), freshUid()];
    await on.store.commit([create(uidRows.key({ uid: good }), reservation)], on.work());
    await on.put("auth", `uid.${marked}`, "", { "KV-Operation": "DEL" });
    await on.put("auth", `uid.${garbled}`, "{}");
    await on.put("auth", "uid.not.a.uid", "{}");
    const { entries, corrupt } = await on.store.scan(uidRows, {});
    expect(keysOf(entries)).toEqual([`uid.${good}`]);
    expect(corrupt.sort()).toEqual([`uid.${garbled}`, `uid.${marked}`, "uid.not.a.uid"].sort());
  });

  it("passes over the neighbours under its prefix", async () => {
    const instanceId = freshUid();
    const parts = { endpoint: MANAGER, instanceId };
    await on.put("records", serviceStatusRows.key(parts).key, '{"epoch":0,"state":"x","observedSpecRevision":0}');
    await on.put("auth", "assignment.platform", "{}");
    expect(await on.store.scan(serviceSpecRows, { endpoint: MANAGER })).toEqual({ entries: [], corrupt: [] });
    expect((await on.store.scan(serviceStatusRows, { endpoint: MANAGER })).entries).toHaveLength(1);
    expect(await on.store.scan(assignmentRows, {})).toEqual({ entries: [], corrupt: [] });
  });

  it("is unavailable rather than partial", async () => {
    const elsewhere = await openStore(broker.url, { space: "elsewhere", streams: [] });
    await expect(elsewhere.store.scan(gateRows, {})).rejects.toMatchObject({ code: "unavailable" });
    await elsewhere.close();
  });
});

describe("a watch", () => {
  it("hints at a rescan first, then at each change, until it is given up", async () => {
    const [entry] = await gates(1);
    if (!entry) throw new Error("no gate");
    const hints: string[] = [];
    const waiting: (() => void)[] = [];
    const seen = (count: number) =>
      new Promise<void>((resolve) => {
        const check = () => (hints.length >= count ? resolve() : waiting.push(check));
        check();
      });
    const given = new AbortController();
    const watching = on.store.watch(entry.key, given.signal, (hint) => {
      hints.push(hint.kind === "changed" ? hint.subject : hint.kind);
      for (const check of waiting.splice(0)) check();
    });
    await seen(1);
    await on.store.commit([touch(entry)], on.work());
    await gates(1);
    await seen(2);
    given.abort();
    await watching;
    expect(hints).toEqual(["rescan", `$KV.cotal_auth_demo.${entry.key.key}`]);
  });
});
