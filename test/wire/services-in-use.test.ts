/** The services' own credentials at work: store, scan, serve, sweep. */
import { Svcm } from "@nats-io/services";
import { createInbox, errors, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compilePermissions } from "../../shared/credentials/compile.ts";
import { decodeJwt } from "../../shared/credentials/jwt.ts";
import { systemPorts } from "../../shared/ports.ts";
import { uidRows } from "../../shared/rows/uid.ts";
import { create } from "../../shared/store/message.ts";
import { proveShapes } from "../../shared/store/shape.ts";
import { Actor, Principal, Uid } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import { person, space } from "../kit/bindings.ts";
import { authority, listen, user } from "../kit/members.ts";
import { type Mesh, startMesh } from "../kit/mesh.ts";
import { identity } from "../kit/probe.ts";
import { OUR_STREAMS } from "../kit/store.ts";

let mesh: Mesh;
beforeAll(async () => {
  mesh = await startMesh();
});
afterAll(() => mesh?.stop());

describe("auth", () => {
  it("proves shapes, writes, reads, scans and watches the ledger", async () => {
    const { store, connections } = await authority(mesh);
    await proveShapes({ space, connection: (account) => connections[account] }, [...OUR_STREAMS, "journal"]);
    const stop = new AbortController();
    const hints: string[] = [];
    const watching = store.watch({ family: uidRows, prefix: {} }, stop.signal, (hint) => hints.push(hint.kind));
    await expect.poll(() => hints).toContain("rescan");

    const work = ownWork(systemPorts, 5_000);
    const value = { owner: person, actor: Actor.parse("cli"), mintedBy: Principal.parse("local.auth") };
    const keys = ["x", "y"].map((letter) => uidRows.key({ uid: Uid.parse(letter.repeat(26)) }));
    await store.commit(
      keys.map((key) => create(key, value)),
      work,
    );
    expect((await store.scan(uidRows, {}, work)).entries).toHaveLength(2);
    await expect.poll(() => hints).toContain("changed");
    stop.abort();
    await watching;
  });

  it("cannot write through the connection that scans, nor scan through the one that writes", async () => {
    const { connections, scanning } = await authority(mesh);
    const row = `$KV.cotal_auth_${space}.uid.${"z".repeat(26)}`;
    const consumer = `$JS.API.CONSUMER.CREATE.KV_cotal_auth_${space}.x.$KV.cotal_auth_${space}.>`;
    await expect(scanning.authority.request(row, "{}")).rejects.toThrow(/Permissions Violation/);
    await expect(connections.authority.request(consumer, "{}")).rejects.toThrow(/Permissions Violation/);
  });
});

describe("a service on its provisioned user", () => {
  const subject = `cotal.${space}.ep.one.exchange.jwks`;

  async function serve(respond: (message: { respond(data: string): boolean }) => void): Promise<NatsConnection> {
    const { connection } = await user(mesh, "exchange");
    const service = await new Svcm(connection).add({ name: "exchange", version: "1.0.0", queue: "", metadata: {} });
    service.addEndpoint("jwks", {
      subject: `${subject}.>`,
      queue: "exchange",
      handler: (error, message) => {
        if (!error) respond(message);
      },
    });
    await connection.flush();
    return connection;
  }

  it("answers a gateway, each request once", async () => {
    const exchange = await serve((message) => {
      message.respond("{}");
      message.respond("again");
    });
    const refused = firstViolation(exchange);
    const gateway = await user(mesh, "gateway_public");
    const caller = `local.gateway_public.${gateway.holder.uid}`;
    expect((await gateway.connection.request(`${subject}.${caller}.nonce`)).string()).toBe("{}");
    expect(await refused).toMatch(/^_INBOX_/);
    await exchange.close();
  });

  it("is found by the micro tools, by name and through the shared inbox", async () => {
    const exchange = await serve(() => {});
    const { connection } = await user(mesh, "operator");
    for (const verb of ["PING", "INFO", "STATS"]) {
      const found = await connection.request(`$SRV.${verb}.exchange`);
      expect(found.json()).toMatchObject({ name: "exchange" });
    }
    const reply = createInbox();
    const answer = await listen(connection, reply);
    connection.publish("$SRV.PING", "", { reply });
    expect(JSON.parse(await answer.first())).toMatchObject({ name: "exchange" });
    await exchange.close();
  });
});

describe("the custodian's system user", () => {
  it("sees the JWT of a directly signed user as it was signed, and ends its connection", async () => {
    const { key, holder } = identity(person, "Cli_X");
    const connection = await mesh.connect("space", holder, compilePermissions("deployer", holder), "mixed", key);
    const { connection: system } = await user(mesh, "custodian_system");
    const { server_id: server, client_id: cid } = connection.info ?? {};
    const body = JSON.stringify({ acc: mesh.accounts.space, auth: true, state: 0, sort: "cid", limit: 65_536 });
    const answer = await system.request(`$SYS.REQ.SERVER.${server}.CONNZ`, body);
    const { data } = answer.json<{ data: { connections: { cid: number; jwt?: string }[] } }>();
    const row = data.connections.find((candidate) => candidate.cid === cid);
    expect(decodeJwt(row?.jwt ?? "").nats.tags).toContain(`principal:${person}.Cli_X`);

    await system.request(`$SYS.REQ.SERVER.${server}.KICK`, JSON.stringify({ cid }));
    await connection.closed();
    for (const report of ["STATSZ", "VARZ"]) {
      const found = await system.request(`$SYS.REQ.SERVER.PING.${report}`);
      expect(found.json()).toMatchObject({ server: { id: server } });
    }
  });
});

/** The subject of the first thing that the broker refuses this connection. */
async function firstViolation(connection: NatsConnection): Promise<string | undefined> {
  for await (const event of connection.status()) {
    if (event.type === "error" && event.error instanceof errors.PermissionViolationError) return event.error.subject;
  }
  return undefined;
}
