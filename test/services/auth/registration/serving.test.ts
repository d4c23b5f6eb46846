import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { authDescribe } from "../../../../shared/contracts/auth/describe.ts";
import { LIFE } from "../../../../shared/limits.ts";
import { systemPorts } from "../../../../shared/ports.ts";
import { subjectOf } from "../../../../shared/store/streams.ts";
import type { Host } from "../../../kit/hosting.ts";
import { statistics } from "../../../kit/micro.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { frozen, stored } from "../scene.ts";
import { type Registered, registeredIn } from "./space.ts";

/** Asks one after the other until it is done, and counts; rejects with the first that fails. */
async function asking(space: TestSpace, done: () => boolean | Promise<boolean>): Promise<number> {
  for (let count = 0; ; count += 1) {
    const { descriptor } = await space.operator.call(authDescribe, null, { once: true });
    expect(descriptor.epoch).toBe(0);
    if (await done()) return count + 1;
  }
}

const served = async (space: TestSpace): Promise<number> =>
  (await statistics(space.roots.space, "auth")).get("describe")?.num_requests ?? 0;

describe("a serve credential", () => {
  it("of 5 s is renewed before it ends, under the same epoch, without a request lost or a counter reset", async () => {
    const standingTtlS = LIFE.minStandingTtlS;
    const space = await startSpace({ services: ["auth"], change: () => ({ standingTtlS }) });
    try {
      const registered = await registeredIn(space);
      const gate = await registered.gate();
      const until = Date.now() + (standingTtlS + 1) * 1_000;
      const count = await asking(space, () => Date.now() > until);
      expect(await served(space)).toBe(count);
      expect(await registered.gate()).toEqual(gate);
      expect((await registered.rows()).every(({ processEpoch }) => processEpoch === 0)).toBe(true);
      expect(space.hosts[0]?.service("auth").ready()).toBe(true);
    } finally {
      await space.stop();
    }
  });

  it("is renewed at three quarters of its life, the former connection closed", async () => {
    const everyMs = LIFE.standingTtlS * 1_000 * LIFE.renewAt;
    const sleep: typeof systemPorts.sleep = (ms, signal) => systemPorts.sleep(ms === everyMs ? 300 : ms, signal);
    const space = await startSpace({ services: ["auth"], change: () => ({ ports: { ...systemPorts, sleep } }) });
    try {
      const registered = await registeredIn(space);
      const renewed = async () => (await registered.rows()).length >= 4;
      const count = await asking(space, renewed);
      expect(await served(space)).toBe(count);
      const open = () => space.hosts[0]?.owned.list().filter(({ label, ended }) => label === "serve:auth" && !ended);
      await expect.poll(() => open()?.length).toBe(1);
    } finally {
      await space.stop();
    }
  });
});

describe("a serve connection that ended", () => {
  let space: TestSpace;
  let host: Host;
  let registered: Registered;
  beforeAll(async () => {
    space = await startSpace({ services: ["auth"] });
    [host] = space.hosts as [Host];
    registered = await registeredIn(space);
  });
  afterAll(() => space.stop());

  const auth = () => host.service("auth");
  /** Ends it as a server does that kicks it. */
  async function hangUp(): Promise<void> {
    const serving = host.owned.list().find(({ label, ended }) => label === "serve:auth" && !ended);
    await host.connections.find(({ info }) => info?.client_id === serving?.tuple?.cid)?.close();
  }

  it("is followed by another under the same gate", async () => {
    const gate = await registered.gate();
    const before = (await registered.rows()).length;
    await hangUp();
    await expect.poll(async () => (await registered.rows()).length, { timeout: 5_000 }).toBe(before + 1);
    await expect.poll(() => auth().ready(), { timeout: 5_000 }).toBe(true);
    expect((await space.operator.call(authDescribe, null)).descriptor.epoch).toBe(0);
    expect(await registered.gate()).toEqual(gate);
  });

  it("leaves it unready while its gate cannot be read, and serving once it can", async () => {
    const { gate } = registered.keys;
    const value = await stored(space, gate);
    await space.roots.authority.request(subjectOf("auth", space.space, gate.key), "{", { timeout: 5_000 });
    await hangUp();
    await expect.poll(() => host.lines.some((line) => line.includes("the gate cannot be read"))).toBe(true);
    expect(auth().ready()).toBe(false);
    await space.put(gate, value);
    await expect.poll(() => auth().ready(), { timeout: 10_000 }).toBe(true);
  });

  it("is not needed to notice that the gate moved: it is superseded as soon as it did", async () => {
    const { gate } = registered.keys;
    await space.put(gate, { ...(await stored(space, gate)), ...frozen() });
    expect(await auth().ended).toBe("superseded");
  });
});
