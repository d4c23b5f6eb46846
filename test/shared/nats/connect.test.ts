import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { type ConnectUserOptions, connectUser, tupleOf, type User } from "../../../shared/nats/connect.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { config, user } from "./one-account.ts";

let broker: Broker;
const opened: NatsConnection[] = [];

async function open(of: () => User, more: Partial<ConnectUserOptions> = {}): Promise<NatsConnection> {
  const options = { servers: broker.url, name: "test", user: of, reconnect: false, ...more };
  const connection = await connectUser(options);
  opened.push(connection);
  return connection;
}

/** Resolves at the next status of that type. */
async function status(connection: NatsConnection, type: string): Promise<void> {
  for await (const event of connection.status()) if (event.type === type) return;
  throw new Error(`ended before ${type}`);
}

beforeAll(async () => {
  broker = await startBroker({ config: config(), jetstream: false });
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((connection) => connection.close()));
});
afterAll(() => broker.stop());

describe("connecting", () => {
  it("signs the nonce, and asks under an inbox of its own nkey", async () => {
    const alice = user();
    const connection = await open(() => alice);
    connection.subscribe("echo", { callback: (_error, message) => void message.respond(message.reply ?? "") });
    const reply = await connection.request("echo");
    expect(reply.string()).toMatch(new RegExp(`^_INBOX_${alice.key.public}\\.`));
  });

  it("tells the tuple that the server itself uses", async () => {
    const alice = user();
    const [one, two] = [await open(() => alice), await open(() => alice)];
    expect(tupleOf(one, alice.key.public)).toEqual({
      serverId: one.info?.server_id,
      cid: one.info?.client_id,
      userNkey: alice.key.public,
    });
    expect(tupleOf(two, alice.key.public).cid).not.toBe(tupleOf(one, alice.key.public).cid);
    expect(() => tupleOf(one, "nobody")).toThrow("internal error");
  });

  it("refuses a user whose key does not fit, one expired, and a broker that is not there", async () => {
    const alice = user();
    const refused = expect.objectContaining({ code: "unauthenticated" });
    await expect(open(() => ({ ...alice, key: createKeyPair("user") }))).rejects.toThrowError(refused);
    await expect(open(() => user({ seconds: -1 }))).rejects.toThrowError(refused);
    await expect(open(() => alice, { servers: "nats://127.0.0.1:1" })).rejects.toThrowError(
      expect.objectContaining({ code: "unavailable" }),
    );
  });

  it("ends with the first loss where it may not reconnect", async () => {
    const alice = user();
    const connection = await open(() => alice);
    await broker.restart();
    await connection.closed();
    expect(connection.isClosed()).toBe(true);
  });

  it("comes back under a renewed user, however often the former one is refused", async () => {
    const key = createKeyPair("user");
    let current = user({ key, seconds: 60 });
    const refusals: string[] = [];
    const connection = await open(() => current, {
      reconnect: true,
      log: { debug: () => {}, info: () => {}, warn: (fields: object) => refusals.push(JSON.stringify(fields)) },
    });
    current = user({ key, seconds: -1 });
    const back = status(connection, "reconnect");
    await broker.restart();
    await expect
      .poll(() => refusals.filter((line) => line.includes("Authorization")).length, { timeout: 10_000 })
      .toBeGreaterThan(2);
    current = user({ key });
    await back;
    await connection.flush();
  }, 15_000);

  it("sends a bearer beside the user, asked anew each time", async () => {
    let asked = 0;
    const alice = user();
    const token = () => {
      asked += 1;
      return "bearer";
    };
    const connection = await open(() => alice, { token, reconnect: true, inboxPrefix: "_INBOX_nonce" });
    const back = status(connection, "reconnect");
    await broker.restart();
    await back;
    expect(asked).toBe(2);
  });
});
