import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Uid } from "../../../../shared/tokens.ts";
import type { Host } from "../../../kit/hosting.ts";
import { Crash, failCommit } from "../../../kit/pause.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { type Registered, registeredIn, servePrincipal } from "./space.ts";

describe("a restart", () => {
  let space: TestSpace;
  let current: Host;
  let registered: Registered;
  beforeAll(async () => {
    space = await startSpace({ authTimeoutS: 1 });
    await space.host(["custodian"]);
    current = await space.host(["auth"]);
    registered = await registeredIn(space);
  });
  afterAll(() => space.stop());

  const restart = (change: Parameters<TestSpace["host"]>[1] = () => ({})) => space.host(["auth"], change);
  const activeRows = async () => (await registered.rows()).filter(({ state }) => state === "active");

  it.each(["freeze", "revoke", "contain", "evict"] as const)(
    "that crashed after its step %s is resumed under the same operation, and moves the epoch once",
    async (step) => {
      const before = await registered.gate();
      const former = current;
      const afterStep = async (at: { readonly step: string }) => {
        if (at.step === step) throw new Crash();
      };
      await expect(restart(() => ({ afterStep }))).rejects.toThrow(Crash);
      const left = await registered.gate();
      expect(left).toMatchObject({ state: "frozen", generation: before.generation, processEpoch: before.processEpoch });
      const opId = left.op?.opId as Uid;
      expect((await registered.stage(opId)).phase).toBe(step === "evict" ? "contained" : "frozen");
      current = await restart();
      expect(await registered.gate()).toMatchObject({
        state: "open",
        generation: before.generation + 1,
        processEpoch: before.processEpoch + 1,
      });
      expect(await registered.stage(opId)).toMatchObject({
        kind: "registration",
        phase: "finished",
        evicted: [servePrincipal(registered.instanceId)],
      });
      expect(await former.service("auth").ended).toBe("superseded");
      await former.stop();
    },
  );

  it.each([
    ["once its gate was open", "finish"],
    ["once its credential was signed", "mint"],
    ["before its status was written", "status"],
  ])("that crashed %s leaves an epoch out", async (_, where) => {
    const before = await registered.gate();
    const former = current;
    const crash = async (at: { readonly step: string }) => {
      if (at.step !== "finish") return;
      if (where === "finish") throw new Crash();
      // From here on nothing but the new incarnation writes such keys.
      failCommit(where === "mint" ? "epcred.auth." : "svc.auth.", where === "mint" ? "after" : "before");
    };
    await expect(restart(() => ({ afterStep: crash }))).rejects.toThrow(Crash);
    expect(await registered.gate()).toMatchObject({ state: "open", processEpoch: before.processEpoch + 1 });
    const left = (await activeRows()).map(({ credentialId }) => credentialId);
    expect(left).toHaveLength(where === "finish" ? 0 : 1);
    current = await restart();
    expect(await registered.gate()).toMatchObject({ state: "open", processEpoch: before.processEpoch + 2 });
    const active = await activeRows();
    expect(active).toHaveLength(1);
    expect(left).not.toContain(active[0]?.credentialId);
    await former.stop();
  });
});
