/** Servers that answer what no server should, played on ordinary subjects of a broker without accounts. */
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Custodian } from "../../../services/custodian/custodian.ts";
import { SystemAccount } from "../../../services/custodian/system.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { CUSTODIAN } from "../../../shared/limits.ts";
import { systemPorts } from "../../../shared/ports.ts";
import type { AccountNkey, Principal, ServerNkey, UserNkey } from "../../../shared/tokens.ts";
import { ownWork } from "../../../shared/work.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";

const account = createKeyPair("account").public as AccountNkey;
const ours = "local.auth_serve_x" as Principal;
let broker: Broker;
const open: NatsConnection[] = [];

beforeAll(async () => {
  broker = await startBroker({ jetstream: false });
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((connection) => connection.close()));
});
afterAll(() => broker.stop());

type Answer = (ask: { acc?: string; limit?: number; cid?: number }) => unknown;
interface Played {
  readonly id: ServerNkey;
  readonly name: string;
  statsz: Answer;
  varz: Answer;
  connz: Answer;
  kick: Answer;
}

/** An honest server alone in the world, with one connection of `ours`; `change` makes it anything else. */
function play(name: string, change: Partial<Played> = {}): Played {
  const id = createKeyPair("server").public as ServerNkey;
  const server = { id, name };
  return {
    id,
    name,
    statsz: () => ({ server, statsz: { jetstream: {} } }),
    varz: () => ({ server, data: { server_id: id, auth_timeout: 0.1 } }),
    connz: (ask) => pageOf(id, ask.limit ?? 0, [row(7)]),
    kick: () => ({ server }),
    ...change,
  };
}

const row = (cid: number) => ({ cid, kind: "Client", account, authorized_user: "local-auth_serve_x" });
const pageOf = (id: string, limit: number, connections: unknown, more: object = {}) => ({
  server: { id },
  data: {
    server_id: id,
    offset: 0,
    limit,
    num_connections: Array.isArray(connections) ? connections.length : 0,
    connections,
    ...more,
  },
});

const RAW = Symbol("raw");
const raw = (body: string | Uint8Array) => ({ [RAW]: body });

async function stage(...servers: Played[]): Promise<{ custodian: Custodian; asked: string[] }> {
  const stageConnection = await connect({ servers: broker.url });
  const connection = await connect({ servers: broker.url });
  open.push(stageConnection, connection);
  const asked: string[] = [];
  const answer = (subject: string, of: Answer) =>
    stageConnection.subscribe(subject, {
      callback: (_error, message) => {
        asked.push(subject.split(".").at(-1) ?? "");
        const value = of(message.data.length > 0 ? message.json() : {});
        const replies = Array.isArray(value) ? value : value === undefined ? [] : [value];
        for (const reply of replies) message.respond(RAW in reply ? reply[RAW] : JSON.stringify(reply));
      },
    });
  for (const server of servers) {
    answer("$SYS.REQ.SERVER.PING.STATSZ", (ask) => server.statsz(ask));
    answer("$SYS.REQ.SERVER.PING.VARZ", (ask) => server.varz(ask));
    answer(`$SYS.REQ.SERVER.${server.id}.CONNZ`, (ask) => server.connz(ask));
    answer(`$SYS.REQ.SERVER.${server.id}.KICK`, (ask) => server.kick(ask));
  }
  await stageConnection.flush();
  const limits = {
    ...CUSTODIAN,
    discoverQuietMs: 30,
    discoverMinMs: 60,
    discoverMaxMs: 200,
    connzLimit: 3,
    connzTimeoutMs: 100,
    kickTimeoutMs: 100,
    afterKickMs: 50,
    maxServers: 4,
  };
  const system = new SystemAccount({ connection, inboxPrefix: "_INBOX", ports: systemPorts, limits });
  const custodian = new Custodian({
    system,
    connected: () => true,
    accounts: { space: account, authority: account },
    untouchable: new Set(),
    ports: systemPorts,
    log: pino({ level: "silent" }),
  });
  return { custodian, asked };
}

const work = () => ownWork(systemPorts, 20_000);
const absent = "local.nobody" as Principal;

describe("a sweep over hostile answers", () => {
  it("is complete with honest ones", async () => {
    const { custodian } = await stage(play("a"));
    expect(await custodian.principalLiveness(absent, work())).toMatchObject({ state: "gone", sweepComplete: true });
    expect(await custodian.principalLiveness(ours, work())).toMatchObject({ state: "live" });
  });

  const connz = (make: (id: ServerNkey, limit: number) => unknown): Played => {
    const server = play("a");
    server.connz = (ask) => make(server.id, ask.limit ?? 0);
    return server;
  };

  it.each<[string, () => Played, string]>([
    ["a page that is no JSON", () => connz(() => raw("{")), "its CONNZ answer is unreadable"],
    [
      "a page that is not UTF-8",
      () => connz(() => raw(Uint8Array.of(0x22, 0xff, 0x22))),
      "its CONNZ answer is unreadable",
    ],
    ["no page at all", () => connz(() => undefined), "it does not answer CONNZ"],
    ["null connections", () => connz((id, limit) => pageOf(id, limit, null)), "its CONNZ answer is unreadable"],
    ["another server's page", () => connz((_id, limit) => pageOf(play("b").id, limit, [])), "is another server's"],
    ["an empty server id", () => connz((id, limit) => pageOf(id, limit, [], { server_id: "" })), "is another server's"],
    ["a smaller page than asked for", () => connz((id) => pageOf(id, 1, [])), "is to another question"],
    ["a full page", () => connz((id, limit) => pageOf(id, limit, [row(1), row(2), row(3)])), "is full"],
    ["a page out of order", () => connz((id, limit) => pageOf(id, limit, [row(2), row(1)])), "is not in order"],
    ["two answers to STATSZ", () => twice("statsz"), "answers STATSZ twice"],
    ["two answers to VARZ", () => twice("varz"), "answers VARZ twice"],
    ["a STATSZ that is no JSON", () => play("a", { statsz: () => raw("x") }), "a STATSZ reply is unreadable"],
    ["no VARZ", () => play("a", { varz: () => undefined }), "server a does not answer VARZ"],
    [
      "an endless stream of answers",
      () => play("a", { statsz: () => Array(50).fill({}) }),
      "more than 4 servers answer",
    ],
  ])("is incomplete with %s", async (_what, make, cause) => {
    const { custodian } = await stage(make());
    const { state, sweepComplete, note = "" } = await custodian.principalLiveness(absent, work());
    expect({ state, sweepComplete }).toEqual({ state: "unknown", sweepComplete: false });
    expect(note).toContain(cause);
    expect(note.length).toBeLessThanOrEqual(256);
  });

  function twice(what: "statsz" | "varz"): Played {
    const server = play("a");
    const once = server[what];
    server[what] = (ask) => [once(ask), once(ask)];
    return server;
  }

  it("is incomplete where nobody answers, or nobody is there", async () => {
    const { custodian } = await stage();
    const { note } = await custodian.principalLiveness(absent, work());
    expect(note).toBe("no server answers STATSZ; servers heard: none");
  });

  it.each([
    ["joined", 1],
    ["left", -1],
  ])("is incomplete where a server %s between two discoveries that are whole by themselves", async (did, step) => {
    let present = step > 0 ? 1 : 2;
    const member = (name: string, other: string): Played => {
      const server = play(name);
      const named = { id: server.id, name, cluster: "x" };
      server.statsz = () => ({
        server: named,
        statsz: { routes: present > 1 ? [{ name: other }] : [], jetstream: { meta: { cluster_size: present } } },
      });
      server.varz = () => ({ server: named, data: { server_id: server.id, auth_timeout: 1 } });
      return server;
    };
    const [a, b] = [member("a", "b"), member("b", "a")];
    for (const half of ["statsz", "varz"] as const) {
      const whole = b[half];
      b[half] = (ask) => (present > 1 ? whole(ask) : undefined);
    }
    const page = a.connz;
    a.connz = (ask) => {
      present += step;
      return page(ask);
    };
    const { custodian } = await stage(a, b);
    const { sweepComplete, note } = await custodian.principalLiveness(absent, work());
    expect(sweepComplete).toBe(false);
    expect(note).toContain(`server b ${did} meanwhile`);
  });

  it("asks a silent server twice, and no oftener", async () => {
    const { custodian, asked } = await stage(play("a", { connz: () => undefined }));
    await custodian.principalLiveness(absent, work());
    expect(asked.filter((what) => what === "CONNZ")).toHaveLength(2);
  });

  it("puts nothing of a server's own choice into a note but printable ASCII", async () => {
    const server = play("\u00e9\r\n\u0007");
    server.connz = () => raw("");
    const { custodian } = await stage(server);
    const { note = "" } = await custodian.principalLiveness(absent, work());
    expect(note).toMatch(/^[\x20-\x7e]{1,256}$/);
  });
});

describe("kicks over hostile answers", () => {
  it.each<[string, Answer]>([
    ["never comes", () => undefined],
    ["is another server's", () => ({ server: { id: play("b").id } })],
    ["is an error", () => ({ server: { id: "x" }, error: { description: "no" } })],
  ])("do not count where the answer %s, and the outcome is unknown", async (_what, kick) => {
    const { custodian } = await stage(play("a", { kick }));
    const asking = work();
    const [eviction] = await custodian.evictPrincipals([ours], asking);
    expect(eviction).toMatchObject({ kicked: 0, remaining: 1, verifiedGone: false, scanComplete: true });
    expect(asking.effects.outcome).toBe("unknown");
  });

  it("name the connection that was found, once per try", async () => {
    const cids: unknown[] = [];
    const server = play("a");
    const honest = server.kick;
    server.kick = (ask) => {
      cids.push(ask.cid);
      return honest(ask);
    };
    server.connz = (ask) => pageOf(server.id, ask.limit ?? 0, cids.length === 0 ? [row(7), row(9)] : []);
    const { custodian } = await stage(server);
    const [eviction] = await custodian.evictPrincipals([ours], work());
    expect(eviction).toMatchObject({ kicked: 2, remaining: 0, verifiedGone: true });
    expect(cids.sort()).toEqual([7, 9]);
  });

  it("find a live connection though its server's page is full", async () => {
    const server = play("a");
    server.connz = (ask) => pageOf(server.id, ask.limit ?? 0, [row(1), row(2), row(3)]);
    const { custodian } = await stage(server);
    const tuple = { serverId: server.id, cid: 9, userNkey: createKeyPair("user").public as UserNkey };
    const { ledger, sweepComplete } = await custodian.connectionLiveness({ ledger: tuple, records: tuple }, work());
    expect({ state: ledger.state, sweepComplete }).toEqual({ state: "unknown", sweepComplete: false });
    expect((await custodian.principalLiveness(ours, work())).state).toBe("live");
  });
});
