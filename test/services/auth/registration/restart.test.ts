import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { subjectOf } from "../../../../shared/store/streams.ts";
import type { Host } from "../../../kit/hosting.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { during, frozen, retired, stored } from "../scene.ts";
import { type Registered, registeredIn, servePrincipal } from "./space.ts";

describe("a restart", () => {
  let space: TestSpace;
  let custodian: Host;
  let current: Host;
  let registered: Registered;
  beforeAll(async () => {
    space = await startSpace({ authTimeoutS: 1 });
    custodian = await space.host(["custodian"]);
    current = await space.host(["auth"]);
    registered = await registeredIn(space);
  });
  afterAll(() => space.stop());

  const restart = (change: Parameters<TestSpace["host"]>[1] = () => ({})) => space.host(["auth"], change);
  const activeRows = async () => (await registered.rows()).filter(({ state }) => state === "active");

  it("fences its predecessor, ends its connection, and serves under the next epoch", async () => {
    const before = await registered.gate();
    const former = current;
    current = await restart();
    expect(await former.service("auth").ended).toBe("superseded");
    await expect.poll(() => former.service("auth").ready()).toBe(false);
    expect(former.owned.list().find(({ label }) => label === "serve:auth")).toMatchObject({ ended: true });
    const after = await registered.gate();
    expect(after).toMatchObject({
      state: "open",
      generation: before.generation + 1,
      processEpoch: before.processEpoch + 1,
      principal: before.principal,
    });
    expect(after.registrationRevision).toBeGreaterThan(before.registrationRevision);
    const rows = await registered.rows();
    expect(rows.filter(({ processEpoch }) => processEpoch === before.processEpoch).map(({ state }) => state)).toEqual([
      "revoked",
    ]);
    expect((await activeRows()).map(({ processEpoch }) => processEpoch)).toEqual([after.processEpoch]);
    expect((await registered.metadata()).epoch).toBe(String(after.processEpoch));
    expect(await stored(space, registered.keys.status)).toMatchObject({ epoch: after.processEpoch });
    await former.stop();
    expect((await registered.gate()).generation).toBe(after.generation);
  });

  it("waits for the custodian, unready, its gate frozen, and goes on by itself", async () => {
    const { processEpoch } = await registered.gate();
    await current.stop();
    await custodian.stop();
    let done = false;
    const starting = restart().finally(() => {
      done = true;
    });
    await expect.poll(() => registered.gate(), { timeout: 5_000 }).toMatchObject({ state: "frozen" });
    await expect.poll(activeRows, { timeout: 5_000 }).toEqual([]);
    expect(await registered.gate()).toMatchObject({ op: { kind: "registration" }, processEpoch });
    expect(done).toBe(false);
    custodian = await space.host(["custodian"]);
    current = await starting;
    expect(await registered.gate()).toMatchObject({ state: "open", processEpoch: processEpoch + 1 });
  });

  it("that another start overtakes begins again, and fences that one", async () => {
    const { processEpoch } = await registered.gate();
    const former = current;
    let other: Host | undefined;
    const afterStep = async (at: { readonly step: string }) => {
      if (at.step === "finish") other ??= await restart();
    };
    current = await restart(() => ({ afterStep }));
    expect(await other?.service("auth").ended).toBe("superseded");
    expect(await registered.gate()).toMatchObject({ state: "open", processEpoch: processEpoch + 3 });
    expect((await registered.metadata()).epoch).toBe(String(processEpoch + 3));
    await Promise.all([other?.stop(), former.stop()]);
  });

  it("writes over records of its own that others garbled", async () => {
    const { keys } = registered;
    for (const { key } of [keys.spec, keys.status]) {
      const subject = subjectOf("records", space.space, key);
      await space.roots.space.request(subject, '{"forged":true}', { timeout: 5_000 });
    }
    const former = current;
    current = await restart();
    await former.stop();
    const { processEpoch, registrationRevision } = await registered.gate();
    const spec = await space.store.read(keys.spec);
    expect(spec).toMatchObject({ revision: registrationRevision, value: { owner: "local" } });
    expect(await stored(space, keys.status)).toMatchObject({ epoch: processEpoch });
  });

  it("is refused over a gate that ended, is ending, or serves another", async () => {
    await current.stop();
    for (const change of [retired(), frozen("retirement")]) {
      await during(space, registered.keys.gate, change, async () => {
        await expect(restart()).rejects.toMatchObject({ code: "failed-precondition" });
      });
    }
    const principal = servePrincipal(newUid(systemPorts));
    await during(space, registered.keys.gate, { principal }, async () => {
      await expect(restart()).rejects.toMatchObject({ code: "permission-denied" });
    });
    current = await restart();
  });
});
