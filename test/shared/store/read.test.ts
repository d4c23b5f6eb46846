import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { canonicalText, digestOf } from "../../../shared/canonical.ts";
import { admissionRows } from "../../../shared/rows/admission.ts";
import { artifactRows } from "../../../shared/rows/artifact.ts";
import { gateRows } from "../../../shared/rows/gate.ts";
import { serviceStatusRows } from "../../../shared/rows/service.ts";
import { create, swap } from "../../../shared/store/message.ts";
import { RunId } from "../../../shared/tokens.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { freshUid, MANAGER, openGate } from "../../kit/rows.ts";
import { openStore, type TestStore } from "../../kit/store.ts";

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

const status = { epoch: 3, state: "registered", observedSpecRevision: 1 };

describe("a read", () => {
  it("finds nothing where nothing was written", async () => {
    expect(await on.store.read(gateRows.key({ uid: freshUid() }))).toBeUndefined();
  });

  it.each([
    ["an unknown member", (uid: string) => ({ ...openGate(uid as never), more: 1 }), {}],
    ["a missing member", () => ({ state: "open", generation: 1 }), {}],
    ["another row's identity", () => openGate(freshUid()), {}],
    ["an impossible value", (uid: string) => ({ ...openGate(uid as never), generation: -1 }), {}],
    ["a frozen gate without an operation", (uid: string) => ({ ...openGate(uid as never), state: "frozen" }), {}],
    ["a broker's header", openGate, { "Nats-Stream": "X" }],
    ["a deletion marker", openGate, { "KV-Operation": "DEL" }],
    ["a purge marker", openGate, { "KV-Operation": "PURGE" }],
  ])("calls a row with %s corrupt, never absent", async (_what, value, headers) => {
    const uid = freshUid();
    const key = gateRows.key({ uid });
    await on.put("auth", key.key, JSON.stringify(value(uid)), headers);
    await expect(on.store.read(key)).rejects.toMatchObject({ code: "internal", message: "internal error" });
    await expect(on.store.read(key)).rejects.toMatchObject({ reason: expect.stringContaining(key.key) });
  });

  it.each(["", "{", "[]", "null", '{"a":1,"a":1}', "\u0000"])("calls the body %j corrupt", async (body) => {
    const key = gateRows.key({ uid: freshUid() });
    await on.put("auth", key.key, body);
    await expect(on.store.read(key)).rejects.toMatchObject({ code: "internal" });
  });

  it("shows an unreadable row's revision to whoever may write over it", async () => {
    const key = serviceStatusRows.key({ endpoint: MANAGER, instanceId: freshUid() });
    const revision = await on.put("records", key.key, '{"stream":"X","seq":1}');
    expect(await on.store.inspect(key)).toEqual({ state: "unreadable", fault: "garbled", revision });
    await on.store.commit([swap({ key, revision }, status)], on.work());
    expect((await on.store.read(key))?.value).toEqual(status);
  });

  it("passes over members that the mesh may add to an open record", async () => {
    const key = serviceStatusRows.key({ endpoint: MANAGER, instanceId: freshUid() });
    await on.put("records", key.key, JSON.stringify({ ...status, later: [1] }));
    expect((await on.store.read(key))?.value).toMatchObject(status);
  });

  it("has the admission store's own codes", async () => {
    const key = (n: number) =>
      admissionRows.key({ endpoint: MANAGER, runId: RunId.parse(`run-${String(n).padStart(32, "0")}`) });
    await on.put("admission", key(1).key, "{}");
    await on.put("admission", key(2).key, "", { "KV-Operation": "DEL" });
    await expect(on.store.read(key(1))).rejects.toMatchObject({ code: "permission-denied" });
    await expect(on.store.read(key(2))).rejects.toMatchObject({ code: "failed-precondition" });
  });

  it("takes an artifact only under the digest of its bytes", async () => {
    const document = { type: "object" };
    const key = artifactRows.key(digestOf(document));
    await on.store.commit([create(key, document)], on.work());
    expect((await on.store.read(key))?.value).toEqual(document);
    const other = artifactRows.key(digestOf({ type: "string" }));
    await on.put("contracts", other.key, canonicalText({ type: "number" }));
    await expect(on.store.read(other)).rejects.toMatchObject({ code: "internal" });
  });

  it("is unavailable, never absent, where there is no stream or no answer", async () => {
    const elsewhere = await openStore(broker.url, { space: "elsewhere", streams: [] });
    const key = gateRows.key({ uid: freshUid() });
    await expect(elsewhere.store.read(key)).rejects.toMatchObject({ code: "unavailable" });
    await elsewhere.close();
    await expect(elsewhere.store.read(key)).rejects.toMatchObject({ code: "unavailable" });
    await broker.kill("SIGSTOP");
    try {
      await expect(on.store.read(key, on.work(300))).rejects.toMatchObject({ code: "unavailable" });
    } finally {
      await broker.kill("SIGCONT");
    }
    expect(await on.store.read(key)).toBeUndefined();
  });
});

describe("the first message", () => {
  it("counts where a stream keeps several of a subject", async () => {
    const first = await on.put("issued", "v1.local.x.y.z", "1");
    await on.put("issued", "v1.local.x.y.z", "2");
    const message = await on.store.next("issued", "v1.local.x.y.z", 1);
    expect(message?.revision).toBe(first);
    expect(Buffer.from(message?.body ?? []).toString()).toBe("1");
  });
});

describe("the last sequence of a stream", () => {
  it("comes from the leader, and is nothing where there is no stream", async () => {
    const revision = await on.put("records", "some.key", "{}");
    expect(await on.store.lastSeq("records")).toBe(revision);
    expect(await on.store.lastSeq("pool")).toBeUndefined();
  });
});
