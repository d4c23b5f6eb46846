import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { connectionState } from "../../../services/custodian/liveness.ts";
import { type Asked, connzRequest, type Page, readPage, unanswered } from "../../../services/custodian/page.ts";
import { readKick, readStatsz, readVarz } from "../../../services/custodian/replies.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import type { AccountNkey, ServerNkey, UserNkey } from "../../../shared/tokens.ts";

const server = createKeyPair("server").public as ServerNkey;
const account = createKeyPair("account").public as AccountNkey;
const asked: Asked = { server, account, limit: 4 };
const bytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

const row = (cid: number, more: object = {}) => ({
  cid,
  kind: "Client",
  account,
  authorized_user: "local-auth",
  ...more,
});
const answer = (connections: unknown, more: object = {}) => ({
  server: { id: server },
  data: {
    server_id: server,
    offset: 0,
    limit: 4,
    num_connections: Array.isArray(connections) ? connections.length : 0,
    connections,
    ...more,
  },
});
const read = (value: unknown): Page => readPage(bytes(value), asked);

describe("a page of connections", () => {
  it("is asked for whole, open connections alone, with their users", () => {
    expect(connzRequest(asked)).toEqual({ acc: account, auth: true, state: 0, sort: "cid", limit: 4, offset: 0 });
  });

  it("is well formed when empty, and when every row is somebody's", () => {
    expect(read(answer([]))).toEqual({ rows: [] });
    expect(read(answer([row(3), row(9)]))).toEqual({
      rows: [
        { cid: 3, principal: "local.auth" },
        { cid: 9, principal: "local.auth" },
      ],
    });
  });

  it.each<[string, unknown, string]>([
    ["no JSON object", 7, "is unreadable"],
    ["an error", { ...answer([]), error: { code: 500, description: "x" } }, "is unreadable"],
    ["an account it cannot load", answer(null, { server_id: "" }), "is unreadable"],
    ["an empty server id", answer([], { server_id: "" }), "is another server's"],
    ["another server's id", answer([], { server_id: createKeyPair("server").public }), "is another server's"],
    ["another server's envelope", { ...answer([]), server: { id: "N" } }, "is another server's"],
    ["another offset", answer([], { offset: 4 }), "is to another question"],
    ["another limit", answer([], { limit: 1_024 }), "is to another question"],
    ["too high a count", answer([row(1)], { num_connections: 2 }), "miscounts"],
    ["too low a count", answer([row(1), row(2)], { num_connections: 1 }), "miscounts"],
    ["a cid twice", answer([row(2), row(2)]), "is not in order"],
    ["falling cids", answer([row(2), row(1)]), "is not in order"],
    ["a cid of 0", answer([row(0)]), "is not in order"],
    ["a fractional cid", answer([row(1.5)]), "is unreadable"],
    ["a row without kind", answer([{ cid: 1, account }]), "is unreadable"],
    ["a null among the rows", answer([row(1), null]), "is unreadable"],
    ["a row of another account", answer([row(1, { account: createKeyPair("account").public })]), "of another account"],
    ["a row without account", answer([row(1, { account: undefined })]), "is unreadable"],
    ["a JWT that is no text", answer([row(1, { jwt: 7 })]), "is unreadable"],
  ])("proves nothing and shows nobody with %s", (_what, value, fault) => {
    const page = read(value);
    expect(page.rows).toEqual([]);
    expect(page.fault).toContain(fault);
  });

  it("shows whom it names but proves nothing when it is full, or has a leafnode", () => {
    const full = read(answer([row(1), row(2), row(3), row(4)]));
    expect(full.fault).toBe("its page of 4 connections is full");
    expect(full.rows).toHaveLength(4);
    const leaf = read(answer([row(1), row(2, { kind: "Leafnode" })]));
    expect(leaf.fault).toBe("connection 2 is a leafnode");
    expect(leaf.rows).toEqual([{ cid: 1, principal: "local.auth" }]);
  });

  it("is well formed but unattributed when a row could be anyone", () => {
    const page = read(answer([row(1), row(2, { authorized_user: "x" }), row(3, { authorized_user: "y" })]));
    expect(page.fault).toBeUndefined();
    expect(page.unattributed).toBe("connection 2: its user name is no principal");
  });
});

describe("a connection's state", () => {
  const userNkey = createKeyPair("user").public as UserNkey;
  const tuple = { serverId: server, cid: 5, userNkey };
  const walk = (page: Page | undefined, complete: boolean) => ({
    pages: new Map(page ? [[server, page]] : []),
    connections: new Map(),
    complete,
  });
  const other = createKeyPair("user").public as UserNkey;

  it.each<[string, Page | undefined, boolean, string]>([
    ["the server has it with that nkey", { rows: [{ cid: 5, userNkey }] }, false, "live"],
    ["a full page has it with that nkey", { rows: [{ cid: 5, userNkey }], fault: "full" }, false, "live"],
    ["the server has its cid with another nkey", { rows: [{ cid: 5, userNkey: other }] }, true, "unknown"],
    ["the server has its cid without nkey", { rows: [{ cid: 5 }] }, true, "unknown"],
    ["the server answers without it, others silent", { rows: [{ cid: 4, userNkey }] }, false, "gone"],
    ["the server answers without it, another row being nobody's", { rows: [], unattributed: "x" }, false, "gone"],
    ["the page is not whole", { rows: [], fault: "full" }, false, "unknown"],
    ["the server was asked and is silent", unanswered, false, "unknown"],
    ["the server is not heard and the sweep incomplete", undefined, false, "unknown"],
    ["the server is not heard and the sweep complete", undefined, true, "gone"],
  ])("where %s", (_what, page, complete, state) => {
    expect(connectionState(walk(page, complete), tuple)).toBe(state);
  });
});

describe("other answers of a server", () => {
  const named = { id: server, name: "n", cluster: "c" };

  it("counts a kick as acknowledged only when that server says so", () => {
    expect(readKick(bytes({ server: named }), server)).toBe("kicked");
    expect(readKick(bytes({ server: named, error: { description: "no such client or leafnode id" } }), server)).toBe(
      "gone",
    );
    expect(readKick(bytes({ server: named, error: { description: "server is not running" } }), server)).toBeUndefined();
    expect(readKick(bytes({ server: named, error: {} }), server)).toBeUndefined();
    expect(readKick(bytes({ server: { id: createKeyPair("server").public } }), server)).toBeUndefined();
    expect(readKick(bytes({}), server)).toBeUndefined();
    expect(readKick(new Uint8Array([0xff]), server)).toBeUndefined();
  });

  it("takes from VARZ the longest that a client may take to authenticate", () => {
    const data = { server_id: server, auth_timeout: 5, gateway: {}, websocket: { auth_timeout: 7.5 }, mqtt: {} };
    expect(readVarz(bytes({ server: named, data }))).toEqual({ ...named, gateways: false, authTimeoutMs: 7_500 });
    expect(readVarz(bytes({ server: named, data: { ...data, gateway: { name: "c" } } }))?.gateways).toBe(true);
  });

  it.each([
    ["no timeout", { server_id: server }],
    ["a negative timeout", { server_id: server, auth_timeout: -1 }],
    ["a timeout that never ends", { server_id: server, auth_timeout: 1e300 }],
    ["another server's id", { server_id: createKeyPair("server").public, auth_timeout: 1 }],
  ])("does not read a VARZ with %s", (_what, data) => {
    expect(readVarz(bytes({ server: named, data }))).toBeUndefined();
  });

  it("takes from STATSZ each route once, and the size of the meta group", () => {
    const statsz = { routes: [{ name: "b" }, { name: "b" }, { name: "c" }], jetstream: { meta: { cluster_size: 3 } } };
    const expected = { ...named, routes: ["b", "c"], gateways: false, jetstream: true, metaSize: 3 };
    expect(readStatsz(bytes({ server: named, statsz }))).toEqual(expected);
    expect(readStatsz(bytes({ server: named, statsz: { gateways: [{}] } }))).toMatchObject({
      gateways: true,
      jetstream: false,
    });
  });

  it.each([
    ["a route without name", { server: named, statsz: { routes: [{ rid: 4 }] } }],
    ["a server that is no nkey", { server: { ...named, id: "*" }, statsz: {} }],
    ["a server without name", { server: { id: server }, statsz: {} }],
    ["a meta group of nobody", { server: named, statsz: { jetstream: { meta: { cluster_size: 0 } } } }],
    ["an error", { server: named, statsz: {}, error: { code: 400 } }],
  ])("does not read a STATSZ with %s", (_what, value) => {
    expect(readStatsz(bytes(value))).toBeUndefined();
  });
});

describe("reading answers", () => {
  /** Anything, and what is nearly an answer. */
  const anything = fc.oneof(
    fc.json().map((text) => new TextEncoder().encode(text)),
    fc.uint8Array({ maxLength: 64 }),
    fc
      .record(
        { cid: fc.anything(), kind: fc.anything(), account: fc.anything(), jwt: fc.anything() },
        { requiredKeys: [] },
      )
      .map((one) => bytes(answer([row(1), JSON.parse(JSON.stringify(one) ?? "null")]))),
  );

  it("never throws, and a page shows nobody without proof of who it is", () => {
    fc.assert(
      fc.property(anything, (data) => {
        for (const one of readPage(data, asked).rows) expect(one.cid).toBeGreaterThan(0);
        readStatsz(data);
        readVarz(data);
        readKick(data, server);
      }),
    );
  });
});
