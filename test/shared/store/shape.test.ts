import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMissing, drift, proveShapes } from "../../../shared/store/shape.ts";
import { type StreamName, shapeOf } from "../../../shared/store/streams.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { OUR_STREAMS, openStore, streamName, type TestStore } from "../../kit/store.ts";

let broker: Broker;
const opened: TestStore[] = [];
beforeAll(async () => {
  broker = await startBroker();
});
afterAll(async () => {
  await Promise.all(opened.map((one) => one.close()));
  await broker.stop();
});

async function open(space: string, streams: readonly StreamName[] = []): Promise<TestStore> {
  const one = await openStore(broker.url, { space, streams });
  opened.push(one);
  return one;
}

describe("creating streams", () => {
  it("makes each in the shape that is proven afterwards, once, whoever is first", async () => {
    const [one, two] = [await open("made"), await open("made")];
    await Promise.all([one, two].map(({ shapes }) => createMissing(shapes, OUR_STREAMS)));
    await createMissing(one.shapes, OUR_STREAMS);
    expect(await drift(two.shapes, OUR_STREAMS)).toBeUndefined();
  });

  it("never makes the journal, and does not miss it", async () => {
    const one = await open("journal");
    await createMissing(one.shapes, ["journal"]);
    await expect(one.api(`STREAM.INFO.${streamName("journal", one.space)}`)).rejects.toThrow("10059");
    await proveShapes(one.shapes, ["journal"]);
  });
});

describe("the proof of a shape", () => {
  it("waits for a stream that is not there yet", async () => {
    const one = await open("absent");
    await expect(proveShapes(one.shapes, ["auth"])).rejects.toMatchObject({ code: "unavailable" });
  });

  const wrong: [StreamName, string, Record<string, unknown>][] = [
    ["auth", "subjects", { subjects: ["$KV.cotal_auth_SPACE.>", "extra.SPACE.>"] }],
    ["auth", "max_msgs_per_subject", { max_msgs_per_subject: 2 }],
    ["auth", "max_msgs", { max_msgs: 1_000 }],
    ["auth", "max_bytes", { max_bytes: 1 << 30 }],
    ["auth", "max_age", { max_age: 3_600_000_000_000 }],
    ["auth", "max_msg_size", { max_msg_size: 1_024 }],
    ["auth", "storage", { storage: "memory" }],
    ["auth", "allow_direct", { allow_direct: true }],
    ["auth", "allow_atomic", { allow_atomic: false }],
    ["auth", "allow_msg_ttl", { allow_msg_ttl: false }],
    ["auth", "deny_delete", { deny_delete: false }],
    ["auth", "deny_purge", { deny_purge: false }],
    ["auth", "allow_rollup_hdrs", { deny_purge: false, allow_rollup_hdrs: true }],
    ["auth", "subject_delete_marker_ttl", { deny_purge: false, subject_delete_marker_ttl: 1_000_000_000 }],
    ["auth", "republish", { republish: { src: "$KV.>", dest: "copy.SPACE.>" } }],
    ["auth", "subject_transform", { subject_transform: { src: "$KV.>", dest: "other.SPACE.>" } }],
    ["auth", "sources", { sources: [{ name: "SOURCE" }] }],
    ["auth", "retention", { retention: "interest" }],
    ["connect", "allow_atomic", { allow_atomic: true }],
    ["admission", "discard", { discard: "old", discard_new_per_subject: false }],
    ["issued", "max_msgs_per_subject", { max_msgs_per_subject: 1 }],
    ["accepted", "allow_direct", { allow_direct: false }],
    ["observations", "no_ack", { no_ack: false }],
    ["observations", "max_age", { max_age: 60_000_000_000 }],
    ["observations", "deny_delete", { deny_delete: true }],
    ["observations", "subjects", { subjects: ["cotal.SPACE.ep.>"] }],
  ];
  it.each(wrong)("refuses %s with another %s", async (stream, field, change) => {
    const space = `wrong-${wrong.findIndex((row) => row[2] === change)}`;
    const one = await open(space);
    const shape = Object.entries(shapeOf(stream, one.space)).filter(([, value]) => typeof value !== "symbol");
    const config = { ...Object.fromEntries(shape), name: streamName(stream, one.space), ...change };
    await one.api(`STREAM.CREATE.${config.name}`, JSON.parse(JSON.stringify(config).replaceAll("SPACE", space)));
    await expect(proveShapes(one.shapes, [stream])).rejects.toMatchObject({
      code: "failed-precondition",
      reason: expect.stringContaining(field),
    });
  });

  it("sees a change while it runs", async () => {
    const one = await open("drifting", ["records"]);
    expect(await drift(one.shapes, ["records"])).toBeUndefined();
    const { config } = await one.api(`STREAM.INFO.${streamName("records", one.space)}`);
    await one.api(`STREAM.UPDATE.${streamName("records", one.space)}`, { ...config, max_msgs: 10 });
    expect(await drift(one.shapes, ["records"])).toContain("max_msgs is 10");
  });
});
