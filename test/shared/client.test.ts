import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AuthorityClient } from "../../shared/client.ts";
import { evictPrincipals } from "../../shared/contracts/custodian/evict-principals.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import { Actor, Owner, Principal, Space } from "../../shared/tokens.ts";
import { type Broker, startBroker } from "../kit/broker.ts";

const args = { principals: [Principal.parse("local.exchange")] };

let broker: Broker;
let server: NatsConnection;
const connections: NatsConnection[] = [];

beforeAll(async () => {
  broker = await startBroker();
  server = await open();
});
afterAll(async () => {
  await Promise.all(connections.map((connection) => connection.close()));
  await broker.stop();
});

async function open(): Promise<NatsConnection> {
  const connection = await connect({ servers: broker.url });
  connections.push(connection);
  return connection;
}

/** Each client in a space of its own, so that none hears another's requests. */
const clientOn = (space: string, connection: () => NatsConnection) =>
  new AuthorityClient({
    connection,
    space: Space.parse(space),
    caller: { owner: Owner.parse("local"), actor: Actor.parse("auth"), uid: newUid(systemPorts) },
    inboxPrefix: "_INBOX_test",
    name: "test",
    ports: systemPorts,
  });

it("a call whose connection is closed meanwhile ends at once, unknown, and is not made again on the next one", async () => {
  let current = await open();
  const next = await open();
  let heard = 0;
  server.subscribe("cotal.closing.ep.one.custodian.>", {
    callback: () => {
      heard += 1;
      const former = current;
      current = next;
      void former.close();
    },
  });
  await server.flush();
  const call = clientOn("closing", () => current).call(evictPrincipals, args, { deadlineMs: 60_000 });
  await expect(call).rejects.toMatchObject({ code: "unavailable", outcome: "unknown" });
  expect(heard).toBe(1);
});

it("a call on a closed connection was certainly not made", async () => {
  const connection = await open();
  await connection.close();
  const call = clientOn("closed", () => connection).call(evictPrincipals, args, { once: true });
  await expect(call).rejects.toMatchObject({ code: "unavailable", outcome: "not-executed" });
});

it("a call that nobody hears is made again until its deadline", async () => {
  const client = clientOn("nobody", () => server);
  const call = client.call(evictPrincipals, args, { deadlineMs: 600 });
  await expect(call).rejects.toMatchObject({ code: "unavailable", outcome: "not-executed" });
});

it("a call that nobody answers is unknown at its deadline", async () => {
  server.subscribe("cotal.silent.ep.one.custodian.>", { callback: () => {} });
  await server.flush();
  const call = clientOn("silent", () => server).call(evictPrincipals, args, { deadlineMs: 300 });
  await expect(call).rejects.toMatchObject({ code: "unavailable", outcome: "unknown" });
});
