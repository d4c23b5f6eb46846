import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemPorts } from "../../../shared/ports.ts";
import { Store } from "../../../shared/store/store.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { ACTOR, freshUid, OWNER } from "../../kit/rows.ts";
import { openStore, streamName, type TestStore } from "../../kit/store.ts";

let broker: Broker;
let on: TestStore;
let other: TestStore;
beforeAll(async () => {
  broker = await startBroker();
  on = await openStore(broker.url);
  other = await openStore(broker.url);
});
afterAll(async () => {
  await Promise.all([on.close(), other.close()]);
  await broker.stop();
});

/** An observed subject under a fresh nonce. */
const subject = (): string =>
  `cotal.demo.ep.v1.one.manager.run-start.${OWNER}.${ACTOR}.${freshUid()}.${"0".repeat(32)}.${freshUid()}`;

describe("taking an observation", () => {
  it("gives its bytes once", async () => {
    const where = subject();
    on.connection.publish(where, '{"v":1}');
    const taken = await on.store.take(where, on.work());
    expect(Buffer.from(taken?.body ?? []).toString()).toBe('{"v":1}');
    expect(await on.store.take(where, on.work(100))).toBeUndefined();
  });

  it("succeeds for exactly one of many, over two connections", async () => {
    for (let round = 0; round < 20; round += 1) {
      const where = subject();
      on.connection.publish(where, "{}");
      const takers = Array.from({ length: 8 }, (_, index) => (index % 2 ? on : other).store.take(where, on.work(300)));
      const taken = (await Promise.all(takers)).filter((observation) => observation !== undefined);
      expect(taken).toHaveLength(1);
    }
  });

  it("waits for a capture that trails the delivery", async () => {
    const where = subject();
    const taking = on.store.take(where, on.work());
    await other.store.lastSeq("observations");
    other.connection.publish(where, "{}");
    expect(await taking).toMatchObject({ subject: where });
  });

  it("gives up after the wait", async () => {
    const started = performance.now();
    expect(await on.store.take(subject(), on.work(150))).toBeUndefined();
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  it("keeps only the last of a request published again on its subject", async () => {
    const where = subject();
    on.connection.publish(where, "1");
    on.connection.publish(where, "2");
    await on.connection.flush();
    expect(Buffer.from((await on.store.take(where, on.work()))?.body ?? []).toString()).toBe("2");
    expect(await on.store.take(where, on.work(100))).toBeUndefined();
  });

  it("refuses what is over five minutes old", async () => {
    const where = subject();
    on.connection.publish(where, "{}");
    await on.connection.flush();
    const later = { ...systemPorts, now: () => Date.now() + 300_500 };
    const store = new Store({ space: on.space, ports: later, connections: { space: on.connection } });
    expect(await store.take(where, on.work())).toBeUndefined();
  });

  it("refuses a body over 16,384 bytes, and an empty one", async () => {
    for (const body of ["x".repeat(16_385), ""]) {
      const where = subject();
      on.connection.publish(where, body);
      await on.connection.flush();
      expect(await on.store.take(where, on.work())).toBeUndefined();
    }
  });

  it("refuses what the broker itself sent there, under a reply subject aimed at it", async () => {
    const where = subject();
    // The answer to a read, and an answer of the API, land on the observed subject and are captured.
    await on.put("records", "some.key", "{}");
    const get = `$JS.API.DIRECT.GET.${streamName("records", on.space)}.$KV.cotal_records_demo.some.key`;
    on.connection.publish(get, "", { reply: where });
    const captured = async () => (await on.store.next("observations", where, 1))?.headers.get("Nats-Stream");
    await expect.poll(captured, { timeout: 5_000, interval: 10 }).toBe(streamName("records", on.space));
    expect(await on.store.take(where, on.work())).toBeUndefined();
  });

  it("is not observed where there is no stream", async () => {
    const elsewhere = await openStore(broker.url, { space: "elsewhere", streams: [] });
    expect(await elsewhere.store.take(subject(), on.work(200))).toBeUndefined();
    await elsewhere.close();
  });
});
