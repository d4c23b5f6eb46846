import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { authDescribe } from "../../../../shared/contracts/auth/describe.ts";
import { authContracts } from "../../../../shared/contracts/auth.ts";
import { custodianContracts } from "../../../../shared/contracts/custodian.ts";
import { exchangeContracts } from "../../../../shared/contracts/exchange.ts";
import { artifactRows } from "../../../../shared/rows/artifact.ts";
import { artifactSubject } from "../../../../shared/subjects.ts";
import type { Host } from "../../../kit/hosting.ts";
import { Crash, failCommit } from "../../../kit/pause.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { stored } from "../scene.ts";
import { type Registered, registeredIn, servePrincipal } from "./space.ts";

const ARTIFACTS = [authContracts, exchangeContracts, custodianContracts].flatMap(({ artifacts }) => artifacts);

describe("a first start", () => {
  let space: TestSpace;
  let first: Registered;
  let host: Host;
  beforeAll(async () => {
    space = await startSpace({ streams: false });
    host = await space.host(["auth"]);
    first = await registeredIn(space);
  });
  afterAll(() => space.stop());

  it("needs no custodian, and opens its gate under the first epoch", async () => {
    const { instanceId, keys } = first;
    const spec = await space.store.read(keys.spec);
    expect(await first.gate()).toEqual({
      state: "open",
      generation: 1,
      processEpoch: 0,
      registrationRevision: spec?.revision,
      nameAuthorityRevision: 0,
      principal: servePrincipal(instanceId),
    });
    expect(spec?.value).toEqual({
      endpoint: "auth",
      owner: "local",
      clusterDigests: [authContracts.clusterDigest],
      protocol: { v: 2 },
    });
    expect(await stored(space, keys.status)).toEqual({
      epoch: 0,
      state: "registered",
      observedSpecRevision: spec?.revision,
      version: "0.1.0",
      at: expect.any(Number),
    });
  });

  it("publishes every contract of the three services, each artifact once", async () => {
    const digests = new Set(ARTIFACTS.map(({ digest }) => digest));
    expect(await space.store.lastSeq("contracts")).toBe(digests.size);
    for (const { digest, text } of ARTIFACTS) {
      const message = await space.store.next("contracts", artifactRows.key(digest).key, 1);
      expect(Buffer.from(message?.body ?? []).toString()).toBe(text);
    }
  });

  it("serves under one credential whose row stands on that gate", async () => {
    const { instanceId } = first;
    const [row, ...others] = await first.rows();
    expect(others).toEqual([]);
    const { registrationRevision } = await first.gate();
    expect(row).toMatchObject({
      role: "serve",
      holderPrincipal: servePrincipal(instanceId),
      lifecycleUid: instanceId,
      state: "active",
      generation: 1,
      processEpoch: 0,
      registrationRevision,
    });
    expect(host.service("auth").ready()).toBe(true);
  });

  it("says on $SRV and in describe what its gate says", async () => {
    const { instanceId } = first;
    const { registrationRevision } = await first.gate();
    expect(await first.metadata()).toMatchObject({
      instance: instanceId,
      epoch: "0",
      registrationRevision: String(registrationRevision),
    });
    const { descriptor } = await space.operator.call(authDescribe, null);
    expect(descriptor).toMatchObject({ instanceId, epoch: 0, registrationRevision });
    const bound = await space.operator.call(authDescribe, null, { once: true });
    expect(bound.descriptor.clusterDigests).toEqual([authContracts.clusterDigest]);
  });

  it("of another slot is another instance, which needs nobody's proof", async () => {
    const second = await space.host(["auth"], () => ({ instance: "2" }));
    const other = await registeredIn(space, "2");
    expect(other.instanceId).not.toBe(first.instanceId);
    expect(await other.gate()).toMatchObject({ state: "open", generation: 1, processEpoch: 0 });
    expect([host.service("auth").ready(), second.service("auth").ready()]).toEqual([true, true]);
    await second.stop();
  });
});

describe("a first start that crashes", () => {
  it.each([
    ["while it publishes", () => failCommit(artifactRows.key(authContracts.clusterDigest).key)],
    ["once its gate is there", () => failCommit("epgate.auth.", "after")],
    ["once its record is written", () => failCommit("svc.auth.", "after")],
  ])("%s goes on at the next one, still under the first epoch", async (_, crash) => {
    const space = await startSpace();
    try {
      crash();
      await expect(space.host(["auth"])).rejects.toThrow(Crash);
      await space.host(["auth"]);
      const { gate } = await registeredIn(space);
      expect(await gate()).toMatchObject({ state: "open", generation: 1, processEpoch: 0 });
    } finally {
      await space.stop();
    }
  });

  it("is not stopped by other bytes under the digest of a contract, and tells of them", async () => {
    const space = await startSpace();
    try {
      const [{ digest }] = ARTIFACTS as [(typeof ARTIFACTS)[number]];
      const taken = artifactRows.key(digest);
      // Anybody who may ask the broker something names where it answers.
      space.roots.space.publish("$JS.API.INFO", "", { reply: artifactSubject(space.space, taken.key) });
      await expect.poll(async () => (await space.store.inspect(taken)).state).toBe("unreadable");
      const host = await space.host(["auth"]);
      expect(host.service("auth").ready()).toBe(true);
      const told = host.lines.map((line) => JSON.parse(line)).filter(({ artifact }) => artifact === taken.key);
      expect(told).toMatchObject([{ level: 50, msg: "other bytes stand under the digest of a contract" }]);
      for (const { digest: other } of ARTIFACTS.filter((artifact) => artifact.digest !== digest)) {
        expect(await space.store.read(artifactRows.key(other))).toBeDefined();
      }
    } finally {
      await space.stop();
    }
  });
});
