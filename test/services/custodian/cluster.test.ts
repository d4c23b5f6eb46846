import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Custodian } from "../../../services/custodian/custodian.ts";
import { type Tuple, tupleOf, type User } from "../../../shared/nats/connect.ts";
import { systemPorts } from "../../../shared/ports.ts";
import type { Principal } from "../../../shared/tokens.ts";
import { ownWork } from "../../../shared/work.ts";
import type { Broker } from "../../kit/broker.ts";
import { type Cluster, startCluster } from "../../kit/cluster.ts";
import { Mesh } from "./mesh.ts";

const mesh = new Mesh();
const alice = `u_${"a".repeat(26)}.coder` as Principal;
const patient = { timeout: 15_000, interval: 50 };
let cluster: Cluster;
let custodian: Custodian;
let one: Broker;
let two: Broker;
let three: Broker;

const work = () => ownWork(systemPorts, 45_000);
const asUser = ({ jwt, key }: User) => ({
  authenticator: (nonce?: string) => ({
    jwt,
    sig: Buffer.from(key.sign(Buffer.from(nonce ?? ""))).toString("base64url"),
  }),
});

beforeAll(async () => {
  cluster = await startCluster({ config: mesh.config, probe: asUser(mesh.user("space", "local.probe")) });
  [one, two, three] = cluster.brokers as [Broker, Broker, Broker];
  custodian = await mesh.custodian(one.url, { limits: { afterKickMs: 200 } });
});
afterAll(async () => {
  await mesh.close();
  await cluster.stop();
});

/** The tuple of a fresh connection of a claim's holder. */
async function hold(broker: Broker): Promise<Tuple> {
  const user = mesh.user("authority", "local.auth");
  return tupleOf(await mesh.connect(broker.url, user), user.key.public);
}

const stateOf = async (tuple: Tuple) =>
  (await custodian.connectionLiveness({ ledger: tuple, records: tuple }, work())).ledger.state;

/** Until the survivors agree that the server is lost, by name. */
const lost = () =>
  vi.waitFor(async () => {
    const { state, note } = await custodian.principalLiveness(alice, work());
    expect(state).toBe("unknown");
    expect(note).toContain("2 of the 3 servers in the meta group answer");
    expect(note).toMatch(new RegExp(`servers heard: .*${two.name}`));
  }, patient);

describe("a custodian of three servers", () => {
  it("evicts on every server", async () => {
    for (const { url } of [one, two, three]) await mesh.connect(url, mesh.user("space", alice));
    expect(await custodian.evictPrincipals([alice], work())).toEqual([
      { principal: alice, kicked: 3, remaining: 0, verifiedGone: true, scanComplete: true },
    ]);
  });

  it("proves nothing while one is killed, until it is started again: then its connections are gone", async () => {
    const tuple = await hold(three);
    expect(await stateOf(tuple)).toBe("live");
    await three.kill("SIGKILL");
    // At once: the survivors still have routes to it, or only just lost them.
    expect(await stateOf(tuple)).toBe("unknown");
    await lost();
    expect(await stateOf(tuple)).toBe("unknown");
    const [eviction] = await custodian.evictPrincipals([alice], work());
    expect(eviction).toMatchObject({ remaining: 0, verifiedGone: false, scanComplete: false });
    await three.restart();
    await vi.waitFor(async () => expect(await stateOf(tuple)).toBe("gone"), patient);
    expect((await custodian.principalLiveness(alice, work())).state).toBe("gone");
  });

  it("proves nothing while one is cut off, though it lives", async () => {
    const tuple = await hold(three);
    await three.kill("SIGSTOP");
    expect(await stateOf(tuple)).toBe("unknown");
    expect((await custodian.principalLiveness(alice, work())).state).toBe("unknown");
    await three.kill("SIGCONT");
    await vi.waitFor(async () => expect(await stateOf(tuple)).toBe("live"), patient);
  });

  it("proves nothing while one is killed, until the operator removes it", async () => {
    const tuple = await hold(three);
    const elsewhere = await hold(two);
    await three.kill("SIGKILL");
    await lost();
    expect(await stateOf(tuple)).toBe("unknown");
    // The server itself is heard, whoever else is silent.
    expect(await stateOf(elsewhere)).toBe("live");
    expect(await stateOf({ ...elsewhere, cid: elsewhere.cid + 1_000 })).toBe("gone");

    const operator = await mesh.connect(two.url, mesh.user("system", "local.operator"));
    await vi.waitFor(async () => {
      const removed = await operator.request("$JS.API.SERVER.REMOVE", JSON.stringify({ peer: three.name }));
      expect(removed.json()).toMatchObject({ success: true });
    }, patient);
    await vi.waitFor(async () => expect(await stateOf(tuple)).toBe("gone"), patient);
    expect((await custodian.principalLiveness(alice, work())).state).toBe("gone");
  });
});
