import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { tupleOf, type User } from "../../../shared/nats/connect.ts";
import { systemPorts } from "../../../shared/ports.ts";
import type { Principal } from "../../../shared/tokens.ts";
import { ownWork } from "../../../shared/work.ts";
import { type Cluster, startCluster } from "../../kit/cluster.ts";
import { Mesh } from "./mesh.ts";

const mesh = new Mesh();
const alice = `u_${"a".repeat(26)}.coder` as Principal;
let cluster: Cluster;

const work = () => ownWork(systemPorts, 45_000);
const asUser = ({ jwt, key }: User) => ({
  authenticator: (nonce?: string) => ({
    jwt,
    sig: Buffer.from(key.sign(Buffer.from(nonce ?? ""))).toString("base64url"),
  }),
});

beforeAll(async () => {
  cluster = await startCluster({ config: mesh.config, probe: asUser(mesh.user("space", "local.probe")) });
});
afterAll(async () => {
  await mesh.close();
  await cluster.stop();
});

describe("a custodian of three servers", () => {
  it("evicts on every server, and proves nothing while one is killed until it is removed", async () => {
    const [one, two, three] = cluster.brokers;
    if (!one || !two || !three) throw new Error("three servers were started");
    const custodian = await mesh.custodian(one.url, { limits: { afterKickMs: 200 } });
    for (const { url } of [one, two, three]) await mesh.connect(url, mesh.user("space", alice));
    const holder = mesh.user("authority", "local.auth");
    const tuple = tupleOf(await mesh.connect(three.url, holder), holder.key.public);
    const of = async () => (await custodian.connectionLiveness({ ledger: tuple, records: tuple }, work())).ledger.state;

    expect(await custodian.evictPrincipals([alice], work())).toEqual([
      { principal: alice, kicked: 3, remaining: 0, verifiedGone: true, scanComplete: true },
    ]);
    expect(await of()).toBe("live");

    await three.kill("SIGKILL");
    // At once: the survivors still have routes to it, or only just lost them.
    expect(await of()).toBe("unknown");
    const heard = new RegExp(`servers heard: .*${two.name}`);
    await vi.waitFor(async () => {
      const { state, note } = await custodian.principalLiveness(alice, work());
      expect(state).toBe("unknown");
      expect(note).toContain("2 of the 3 servers in the meta group answer");
      expect(note).toMatch(heard);
    }, 10_000);
    expect(await of()).toBe("unknown");
    const [eviction] = await custodian.evictPrincipals([alice], work());
    expect(eviction).toMatchObject({ remaining: 0, verifiedGone: false, scanComplete: false });

    const operator = await mesh.connect(two.url, mesh.user("system", "local.operator"));
    await vi.waitFor(async () => {
      const removed = await operator.request("$JS.API.SERVER.REMOVE", JSON.stringify({ peer: three.name }));
      expect(removed.json()).toMatchObject({ success: true });
    }, 10_000);
    await vi.waitFor(async () => expect(await of()).toBe("gone"), 10_000);
    expect((await custodian.principalLiveness(alice, work())).state).toBe("gone");
  });
});
