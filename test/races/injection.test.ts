/** A broker writes to whatever reply or delivery subject it is told: no row may come of it (state §8.22, §8.23). */
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemPorts } from "../../shared/ports.ts";
import { gateRows } from "../../shared/rows/gate.ts";
import { serviceStatusRows } from "../../shared/rows/service.ts";
import { create, touch } from "../../shared/store/message.ts";
import { createMissing } from "../../shared/store/shape.ts";
import { Store } from "../../shared/store/store.ts";
import { placeOf, type StreamAccount, subjectOf } from "../../shared/store/streams.ts";
import { Space } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import { type Broker, startBroker } from "../kit/broker.ts";
import { ACTOR, freshUid, MANAGER, OWNER, openGate } from "../kit/rows.ts";
import { OUR_STREAMS } from "../kit/store.ts";

const space = Space.parse("demo");
const work = () => ownWork(systemPorts, 5_000);
const ACCOUNTS = `accounts {
  authority: { jetstream: enabled, users: [{ user: authority, password: pw }] }
  space: { jetstream: enabled, users: [{ user: space, password: pw }, { user: agent, password: pw }] }
}`;

let broker: Broker;
let own: Record<StreamAccount, NatsConnection>;
/** Somebody in the space account without any permission denied. */
let agent: NatsConnection;
let store: Store;

beforeAll(async () => {
  broker = await startBroker({ config: ACCOUNTS });
  const as = (user: string) => connect({ servers: broker.url, user, pass: "pw" });
  own = { authority: await as("authority"), space: await as("space") };
  agent = await as("agent");
  store = new Store({ space, ports: systemPorts, connections: own, scanConnections: own });
  await createMissing({ space, connection: (account) => own[account] }, OUR_STREAMS);
});
afterAll(async () => {
  await Promise.all([own.authority, own.space, agent].map((connection) => connection.close()));
  await broker.stop();
});

const records = placeOf("records", space).name;
const status = { epoch: 3, state: "registered", observedSpecRevision: 1 };

/** Every way in which the space's broker answers somewhere: an API answer, a stored message, a publish acknowledgement. */
async function aim(reply: string, stored: string): Promise<void> {
  agent.publish("$JS.API.INFO", "", { reply });
  agent.publish(`$JS.API.STREAM.INFO.${records}`, "", { reply });
  agent.publish(`$JS.API.STREAM.MSG.GET.${records}`, JSON.stringify({ last_by_subj: stored }), { reply });
  agent.publish(`$JS.API.DIRECT.GET.${records}.${stored}`, "", { reply });
  agent.publish(subjectOf("records", space, "aim.at"), "{}", { reply });
  await agent.flush();
  // The API answers in order, so by now all of the above have been given.
  await agent.request("$JS.API.INFO", "");
}

describe("an answer aimed at a key", () => {
  it("writes no row of the authority's account", async () => {
    const uid = freshUid();
    const key = gateRows.key({ uid });
    const [revision = 0] = await store.commit([create(key, openGate(uid))], work());
    const before = await store.lastSeq("auth");
    await aim(subjectOf("auth", space, key.key), subjectOf("records", space, "some.key"));
    expect(await store.lastSeq("auth")).toBe(before);
    expect(await store.read(key)).toEqual({ key, value: openGate(uid), revision });
    expect((await store.scan(gateRows, {})).corrupt).toEqual([]);
  });

  it("becomes no row of the space's account, even with the bytes of one", async () => {
    const parts = { endpoint: MANAGER, instanceId: freshUid() };
    const key = serviceStatusRows.key(parts);
    const [revision = 0] = await store.commit([create(key, status)], work());
    const forged = subjectOf("records", space, "any.thing");
    await agent.request(forged, JSON.stringify({ ...status, epoch: 99 }));
    await aim(subjectOf("records", space, key.key), forged);
    await expect.poll(() => store.lastSeq("records"), { timeout: 5_000 }).toBeGreaterThan(revision + 3);
    await expect(store.read(key)).rejects.toMatchObject({ code: "internal" });
    expect(await store.inspect(key)).toMatchObject({ state: "unreadable", fault: "garbled" });
    const { entries, corrupt } = await store.scan(serviceStatusRows, parts);
    expect(entries).toEqual([]);
    expect(corrupt).toEqual([key.key]);
  });
});

describe("a push consumer aimed at a key", () => {
  const push = async (stream: string, filter: string, deliver: string, as: NatsConnection): Promise<unknown> => {
    const config = { deliver_subject: deliver, deliver_policy: "all", ack_policy: "none", filter_subject: filter };
    const body = JSON.stringify({ stream_name: stream, config });
    return (await as.request(`$JS.API.CONSUMER.CREATE.${stream}`, body)).json<{ error?: unknown }>().error;
  };

  it("changes no row and makes no observation", async () => {
    const key = serviceStatusRows.key({ endpoint: MANAGER, instanceId: freshUid() });
    const [revision = 0] = await store.commit([create(key, status)], work());
    const observed = `cotal.demo.ep.one.manager.run-start.${OWNER}.${ACTOR}.${freshUid()}.${freshUid()}`;
    await agent.request("$JS.API.STREAM.CREATE.OWN", JSON.stringify({ name: "OWN", subjects: ["own.>"] }));
    await agent.request("own.source", JSON.stringify({ ...status, epoch: 99 }));
    for (const target of [subjectOf("records", space, key.key), observed]) {
      // A subscription on exactly that subject, as its holder may have, lets the broker deliver at all.
      const seen = agent.subscribe(target, { max: 1 });
      await agent.flush();
      expect(await push("OWN", "own.source", target, agent)).toBeUndefined();
      for await (const delivered of seen) expect(delivered.json()).toMatchObject({ epoch: 99 });
    }
    expect(await store.read(key)).toEqual({ key, value: status, revision });
    expect(await store.take(observed, ownWork(systemPorts, 200))).toBeUndefined();
  });

  it("reaches no row of the authority's account, from within it either", async () => {
    const uid = freshUid();
    const key = gateRows.key({ uid });
    const [revision = 0] = await store.commit([create(key, openGate(uid))], work());
    const target = subjectOf("auth", space, key.key);
    expect(await push(records, `${subjectOf("records", space, "some")}.>`, target, agent)).toBeUndefined();
    // Over the stream's own subjects the broker refuses the consumer itself: it would run in a circle.
    expect(await push(placeOf("auth", space).name, target, target, own.authority)).toMatchObject({ err_code: 10081 });
    const at = { key, value: openGate(uid), revision };
    const [next] = await store.commit([touch(at)], work());
    expect(await store.read(key)).toEqual({ ...at, revision: next });
    expect(await store.lastSeq("auth")).toBe(next);
  });
});
