import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { formatCreds } from "../../../shared/credentials/creds.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { tupleOf } from "../../../shared/nats/connect.ts";
import { systemPorts } from "../../../shared/ports.ts";
import type { Principal, ServerNkey, UserNkey } from "../../../shared/tokens.ts";
import { ownWork } from "../../../shared/work.ts";
import { type Broker, freePorts, startBroker } from "../../kit/broker.ts";
import { Mesh } from "./mesh.ts";

const mesh = new Mesh();
const ours = "local.auth_serve_x" as Principal;
const alice = `u_${"a".repeat(26)}.coder` as Principal;
let broker: Broker;

const work = () => ownWork(systemPorts, 45_000);

beforeAll(async () => {
  broker = await startBroker({ config: mesh.config });
});
afterEach(() => mesh.close());
afterAll(() => broker.stop());

const isLive = async (connection: NatsConnection): Promise<boolean> =>
  !connection.isClosed() &&
  connection.flush().then(
    () => true,
    () => false,
  );

describe("a custodian of a single server", () => {
  it("kicks directly signed users on all their connections and verifies them gone, after W", async () => {
    const custodian = await mesh.custodian(broker.url);
    const user = mesh.user("space", alice);
    const hers = [await mesh.connect(broker.url, user), await mesh.connect(broker.url, mesh.user("space", alice))];
    const other = await mesh.connect(broker.url, mesh.user("space", ours));
    const began = performance.now();
    expect(await custodian.evictPrincipals([alice], work())).toEqual([
      { principal: alice, kicked: 2, remaining: 0, verifiedGone: true, scanComplete: true },
    ]);
    // 1 s is the auth_timeout of this server's configuration, 0.1 s the base of these limits.
    expect(performance.now() - began).toBeGreaterThan(1_100);
    await Promise.all(hers.map((connection) => connection.closed()));
    expect(await isLive(other)).toBe(true);
  });

  it("kicks a client that came back during the wait once more", async () => {
    const custodian = await mesh.custodian(broker.url);
    const back = await mesh.connect(broker.url, mesh.user("space", ours), { reconnect: true });
    void (async () => {
      let losses = 0;
      for await (const { type } of back.status()) if (type === "disconnect" && ++losses === 2) await back.close();
    })();
    expect(await custodian.evictPrincipals([ours], work())).toEqual([
      { principal: ours, kicked: 2, remaining: 0, verifiedGone: true, scanComplete: true },
    ]);
  });

  it("says so where a client keeps coming back, and answers others in the same round meanwhile", async () => {
    const custodian = await mesh.custodian(broker.url, { limits: { evictRounds: 1 } });
    await mesh.connect(broker.url, mesh.user("space", ours), { reconnect: true });
    const [stubborn, absent] = await Promise.all([
      custodian.evictPrincipals([ours], work()),
      custodian.evictPrincipals(["local.auth_serve_y" as Principal], work()),
    ]);
    expect(stubborn).toEqual([
      {
        principal: ours,
        kicked: 2,
        remaining: 1,
        verifiedGone: false,
        scanComplete: true,
        note: "it keeps coming back",
      },
    ]);
    expect(absent[0]).toMatchObject({ kicked: 0, verifiedGone: true });
  });

  it("shares the work with a replica, and both verify", async () => {
    const replicas = [await mesh.custodian(broker.url), await mesh.custodian(broker.url)];
    for (let n = 0; n < 20; n += 1) await mesh.connect(broker.url, mesh.user("space", ours));
    const answers = await Promise.all(replicas.map((replica) => replica.evictPrincipals([ours], work())));
    const evictions = answers.flat();
    expect(evictions.map(({ verifiedGone }) => verifiedGone)).toEqual([true, true]);
    // A connection that is closing still counts as one that was kicked.
    expect(evictions.reduce((sum, { kicked }) => sum + kicked, 0)).toBeGreaterThanOrEqual(20);
  });

  it("finds a principal live, then gone", async () => {
    const custodian = await mesh.custodian(broker.url);
    const connection = await mesh.connect(broker.url, mesh.user("space", alice));
    expect(await custodian.principalLiveness(alice, work())).toEqual({
      principal: alice,
      state: "live",
      sweepComplete: true,
    });
    await connection.close();
    expect((await custodian.principalLiveness(alice, work())).state).toBe("gone");
  });

  it("looks for principals in the space account alone", async () => {
    const custodian = await mesh.custodian(broker.url);
    await mesh.connect(broker.url, mesh.user("authority", alice));
    expect((await custodian.principalLiveness(alice, work())).state).toBe("gone");
  });

  it("refuses to evict its asker and itself, and to ask where the system account is gone", async () => {
    const custodian = await mesh.custodian(broker.url);
    for (const principal of ["local.auth", "local.custodian"] as Principal[]) {
      await expect(custodian.evictPrincipals([alice, principal], work())).rejects.toThrowError(
        expect.objectContaining({ code: "failed-precondition" }),
      );
    }
    await mesh.close();
    const { effects, ...lost } = work();
    await expect(custodian.evictPrincipals([alice], { effects, ...lost })).rejects.toThrowError(
      expect.objectContaining({ code: "unavailable", outcome: "not-executed" }),
    );
    expect(effects.outcome).toBe("not-executed");
  });
});

describe("connection liveness on a single server", () => {
  const open = async () => {
    const user = mesh.user("authority", "local.auth");
    const connection = await mesh.connect(broker.url, user);
    return { connection, tuple: tupleOf(connection, user.key.public) };
  };

  it("decides each tuple by what its server says", async () => {
    const custodian = await mesh.custodian(broker.url);
    const { connection, tuple } = await open();
    const elsewhere = { ...tuple, serverId: createKeyPair("server").public as ServerNkey };
    expect(await custodian.connectionLiveness({ ledger: tuple, records: elsewhere }, work())).toEqual({
      ledger: { tuple, state: "live" },
      records: { tuple: elsewhere, state: "gone" },
      sweepComplete: true,
    });
    const foreign = { ...tuple, userNkey: createKeyPair("user").public as UserNkey };
    expect(await custodian.connectionLiveness({ ledger: tuple, records: foreign }, work())).toEqual({
      ledger: { tuple, state: "live" },
      records: { tuple: foreign, state: "unknown" },
      sweepComplete: false,
      note: "the id of a connection is another user's",
    });
    await connection.close();
    const gone = await custodian.connectionLiveness({ ledger: tuple, records: tuple }, work());
    expect([gone.ledger.state, gone.records.state, gone.sweepComplete]).toEqual(["gone", "gone", true]);
  });

  it("looks in the authority account alone", async () => {
    const custodian = await mesh.custodian(broker.url);
    const user = mesh.user("space", "local.auth");
    const tuple = tupleOf(await mesh.connect(broker.url, user), user.key.public);
    const { ledger } = await custodian.connectionLiveness({ ledger: tuple, records: tuple }, work());
    expect(ledger.state).toBe("gone");
  });

  it("proves by the server itself what an incomplete sweep does not", async () => {
    // Expects a second server, so no sweep is complete.
    const custodian = await mesh.custodian(broker.url, { expectedServers: 2 });
    const { connection, tuple } = await open();
    await connection.close();
    const elsewhere = { ...tuple, serverId: createKeyPair("server").public as ServerNkey };
    const found = await custodian.connectionLiveness({ ledger: tuple, records: elsewhere }, work());
    expect([found.ledger.state, found.records.state, found.sweepComplete]).toEqual(["gone", "unknown", false]);
    expect(found.note).toBe(`1 of 2 servers answer; servers heard: ${broker.name}`);
  });

  it("proves every connection of a server's former start gone", async () => {
    const { tuple } = await open();
    await mesh.close();
    await broker.restart();
    const custodian = await mesh.custodian(broker.url);
    const { ledger, sweepComplete } = await custodian.connectionLiveness({ ledger: tuple, records: tuple }, work());
    expect([ledger.state, sweepComplete]).toEqual(["gone", true]);
  });
});

describe("an incomplete sweep of a single server", () => {
  it("is any with an untagged user, until it leaves; the note names server and connection", async () => {
    const custodian = await mesh.custodian(broker.url);
    const user = mesh.user("space");
    const stranger = await mesh.connect(broker.url, user);
    const { cid } = tupleOf(stranger, user.key.public);
    const note = `server ${broker.name}: connection ${cid}: it has no principal tag; servers heard: ${broker.name}`;
    expect(await custodian.principalLiveness(alice, work())).toEqual({
      principal: alice,
      state: "unknown",
      sweepComplete: false,
      note,
    });
    expect(await custodian.evictPrincipals([ours], work())).toEqual([
      { principal: ours, kicked: 0, remaining: 0, verifiedGone: false, scanComplete: false, note },
    ]);
    await stranger.close();
    expect((await custodian.principalLiveness(alice, work())).state).toBe("gone");
  });

  it("still shows who is live, and kicks them", async () => {
    const custodian = await mesh.custodian(broker.url);
    await mesh.connect(broker.url, mesh.user("space", "local.a", "local.b"));
    await mesh.connect(broker.url, mesh.user("space", ours));
    expect((await custodian.principalLiveness(ours, work())).state).toBe("live");
    const [eviction] = await custodian.evictPrincipals([ours], work());
    expect(eviction).toMatchObject({ kicked: 1, remaining: 0, verifiedGone: false, scanComplete: false });
    expect(eviction?.note).toContain("it has several principal tags");
  });

  it("is one in which a page is full", async () => {
    const custodian = await mesh.custodian(broker.url, { limits: { connzLimit: 2 } });
    await mesh.connect(broker.url, mesh.user("space", ours));
    expect((await custodian.principalLiveness(alice, work())).state).toBe("gone");
    await mesh.connect(broker.url, mesh.user("space", ours));
    const { state, note } = await custodian.principalLiveness(alice, work());
    expect(state).toBe("unknown");
    expect(note).toContain("its page of 2 connections is full");
  });

  it("is one of an account that the server does not know", async () => {
    const other = new Mesh();
    const unknown = await startBroker({ config: other.config });
    try {
      Object.assign(other.accounts, { space: createKeyPair("account") });
      const custodian = await other.custodian(unknown.url);
      const { state, note } = await custodian.principalLiveness(alice, work());
      expect(state).toBe("unknown");
      expect(note).toContain("its CONNZ answer is unreadable");
    } finally {
      await other.close();
      await unknown.stop();
    }
  });

  it("is one of a server without JetStream, unless the setting says how many servers there are", async () => {
    const bare = await startBroker({ config: mesh.config, jetstream: false });
    try {
      const unsure = await mesh.custodian(bare.url);
      expect((await unsure.principalLiveness(alice, work())).note).toContain("expectedServers is not set");
      const sure = await mesh.custodian(bare.url, { expectedServers: 1 });
      expect((await sure.principalLiveness(alice, work())).state).toBe("gone");
    } finally {
      await mesh.close();
      await bare.stop();
    }
  });
});

describe("a sweep that cannot see beyond a server", () => {
  it("is incomplete with a leafnode in the account", async () => {
    const [port = 0] = await freePorts(1);
    const hub = await startBroker({ config: `${mesh.config}\nleafnodes { listen: "127.0.0.1:${port}" }` });
    const { jwt, key } = mesh.user("space", "local.leaf");
    const creds = join(hub.dir, "leaf.creds");
    await writeFile(creds, formatCreds(jwt, key.seed));
    const remote = `{ url: "nats-leaf://127.0.0.1:${port}", credentials: "${creds}" }`;
    const leaf = await startBroker({ jetstream: false, config: `leafnodes { remotes: [ ${remote} ] }` });
    try {
      await vi.waitUntil(() => hub.log().includes("Leafnode connection created"), { timeout: 5_000 });
      const custodian = await mesh.custodian(hub.url);
      const { state, note } = await custodian.principalLiveness(alice, work());
      expect(state).toBe("unknown");
      expect(note).toMatch(/connection \d+ is a leafnode/);
    } finally {
      await mesh.close();
      await leaf.stop();
      await hub.stop();
    }
  });

  it("is incomplete with a gateway", async () => {
    const [port = 0] = await freePorts(1);
    const config = `${mesh.config}\ngateway { name: "east", listen: "127.0.0.1:${port}" }`;
    const east = await startBroker({ config, jetstream: false });
    try {
      const custodian = await mesh.custodian(east.url, { expectedServers: 1 });
      const { state, note } = await custodian.principalLiveness(alice, work());
      expect(state).toBe("unknown");
      expect(note).toContain(`server ${east.name} has gateways`);
    } finally {
      await mesh.close();
      await east.stop();
    }
  });
});
