import { errors, type NatsConnection } from "@nats-io/nats-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectUser } from "../../../shared/nats/connect.ts";
import { request } from "../../../shared/nats/requests.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { RawClient } from "../../kit/raw.ts";
import { config, user } from "./one-account.ts";

const LONG = { timeoutMs: 10_000 };

let broker: Broker;
let echo: NatsConnection;
const open = (of = user()) => connectUser({ servers: broker.url, name: "test", user: () => of, reconnect: false });

beforeAll(async () => {
  broker = await startBroker({ config: config(), jetstream: false });
  echo = await open();
  echo.subscribe("echo.>", { callback: (_error, message) => void message.respond(message.data) });
  await echo.flush();
});
afterAll(async () => {
  await echo.close();
  await broker.stop();
});

describe("requests of one connection", () => {
  it("have each its own answer, under the inbox of its nkey", async () => {
    const alice = user();
    const connection = await open(alice);
    const replies: string[] = [];
    echo.subscribe("echo.seen", { callback: (_error, message) => void replies.push(message.reply ?? "") });
    await echo.flush();
    const asked = Array.from({ length: 200 }, (_, index) => request(connection, "echo.seen", String(index), LONG));
    const answers = await Promise.all(asked);
    expect(answers.map((answer) => answer.string())).toEqual(answers.map((_, index) => String(index)));
    expect(new Set(replies).size).toBe(200);
    expect(replies.every((reply) => reply.startsWith(`_INBOX_${alice.key.public}.`))).toBe(true);
    await connection.close();
  });

  it("end in time, and at once where nobody listens", async () => {
    const connection = await open();
    echo.subscribe("silence", { callback: () => {} });
    await echo.flush();
    await expect(request(connection, "silence", "", { timeoutMs: 50 })).rejects.toBeInstanceOf(errors.TimeoutError);
    await expect(request(connection, "nobody", "", LONG)).rejects.toBeInstanceOf(errors.NoRespondersError);
    await connection.close();
  });

  it("are refused one by one where the broker refuses the subject", async () => {
    const connection = await open(user({ publish: ["echo.>"] }));
    const refused = [request(connection, "other", "", LONG), request(connection, "other", "", LONG)];
    const answered = request(connection, "echo.on", "on", LONG);
    for (const one of refused) {
      await expect(one).rejects.toMatchObject({ name: "PermissionViolationError", operation: "publish" });
    }
    expect((await answered).string()).toBe("on");
    await connection.close();
  });

  it("are refused together where the broker lets no answer in, and so is the next one", async () => {
    const deaf = user({ subscribe: ["elsewhere"] });
    const connection = await open(deaf);
    const refusal = { name: "PermissionViolationError", operation: "subscription" };
    const asked = ["echo.one", "echo.two"].map((subject) => request(connection, subject, "", LONG));
    for (const one of asked) await expect(one).rejects.toMatchObject(refusal);
    await expect(request(connection, "echo.three", "", LONG)).rejects.toMatchObject(refusal);
    await connection.close();
  });

  it("end with the connection, and are not sent after it", async () => {
    const connection = await open();
    echo.subscribe("later", { callback: () => {} });
    await echo.flush();
    const asked = request(connection, "later", "", LONG);
    asked.catch(() => {});
    await connection.flush();
    await connection.close();
    await expect(asked).rejects.toMatchObject({ name: "RequestError", message: "connection closed" });
    await expect(request(connection, "echo.x", "", LONG)).rejects.toBeInstanceOf(errors.ClosedConnectionError);
    const former = await open();
    await former.close();
    await expect(request(former, "echo.x", "", LONG)).rejects.toBeInstanceOf(errors.ClosedConnectionError);
  });

  it("are not sent while the connection drains, as nobody would hear the answers", async () => {
    const connection = await open();
    const heard: string[] = [];
    echo.subscribe("count", { callback: (_error, message) => void heard.push(message.subject) });
    await echo.flush();
    connection.subscribe("anything", { callback: () => {} });
    const drained = connection.drain();
    const refused = request(connection, "count", "", LONG);
    await expect(refused).rejects.toBeInstanceOf(errors.DrainingConnectionError);
    await drained;
    await echo.flush();
    expect(heard).toEqual([]);
  });

  it("go on where an empty answer has headers that nobody can read", async () => {
    const connection = await open();
    const raw = await RawClient.open(broker.port, user());
    echo.subscribe("forward", {
      callback: (_error, message) => raw.publish(message.reply ?? "", "NATS/1.0 garbage\r\n\r\n", ""),
    });
    await echo.flush();
    expect((await request(connection, "forward", "", LONG)).data).toHaveLength(0);
    expect((await request(connection, "echo.still", "here", LONG)).string()).toBe("here");
    raw.close();
    await connection.close();
  });
});
