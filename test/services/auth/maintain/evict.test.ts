import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { managerMaintainEvict } from "../../../../shared/contracts/auth/maintain/evict.ts";
import { runAttempt } from "../../../../shared/contracts/auth/runs/run-attempt.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import { actorsOf, runHolder } from "../../../../shared/credentials/roles.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { admissionRows } from "../../../../shared/rows/admission.ts";
import { Actor, type Principal, principalOf, type UserNkey } from "../../../../shared/tokens.ts";
import { freshRunId, freshTakeoverId } from "../../../kit/manager.ts";
import { admission } from "../../../kit/rows.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { connectIdentity } from "../connections.ts";
import { refusesStrangers } from "../manager-refusals.ts";
import { ask, during, frozen, gateKeyOf, MANAGER, retired, type Scene, startScene } from "../scene.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await startScene({ services: ["custodian", "auth", "exchange"], authTimeoutS: 1 });
});
afterAll(() => scene.space.stop());

const own = (manager: Scene["manager"], identity: "goalWriter" | "serve" | "supervisor"): Principal =>
  principalOf(manager.person.owner, actorsOf(manager.instanceId)[identity]);

const argsOf = (manager: Scene["manager"], principals = [own(manager, "goalWriter")]) => ({
  ...manager.envelope(),
  kind: "manager-service-maintenance" as const,
  operation: "evict-family-principal" as const,
  targetInstanceId: manager.instanceId,
  principals,
});
const refused = (code: ErrorCode, change: object) => {
  const { space, manager } = scene;
  return unchanged(space, code, () => ask(manager, managerMaintainEvict, { ...argsOf(manager), ...change }));
};

refusesStrangers(() => scene, managerMaintainEvict, argsOf);

describe("the eviction of a family's principals", () => {
  it("ends their connections, says so in order, and changes no row", async () => {
    const { space, person, manager } = scene;
    const goals = await connectIdentity(space, manager, "goalWriter");
    const before = await sequences(space);
    const request = argsOf(manager, [own(manager, "serve"), own(manager, "goalWriter")]);
    const { evictions, ...answer } = await person.ask(managerMaintainEvict, request, { deadlineMs: 30_000 });
    await goals.closed();
    expect(answer).toEqual({ ...request, owner: person.owner });
    expect(evictions).toMatchObject([
      { principal: own(manager, "serve"), kicked: 0, remaining: 0, verifiedGone: true, scanComplete: true },
      { principal: own(manager, "goalWriter"), kicked: 1, remaining: 0, verifiedGone: true, scanComplete: true },
    ]);
    expect(await sequences(space)).toEqual(before);
    expect(await manager.connection("supervisor")).toBeDefined();
  });

  it("reaches whoever holds a row of the instance, a run of it too", async () => {
    const { space, person, manager } = scene;
    const runId = freshRunId();
    await space.put(admissionRows.key({ endpoint: MANAGER, runId }), {
      ...admission(runId),
      instanceId: manager.instanceId,
    });
    const attempt = {
      runId,
      takeoverId: freshTakeoverId(),
      epoch: 1,
      fencingToken: 1,
      driverId: createKeyPair("user").public as UserNkey,
      mediatorId: createKeyPair("user").public as UserNkey,
    };
    const principal = principalOf(person.owner, runHolder(runId).actor);
    const principals = [principal];
    await refused("permission-denied", { principals });
    await person.ask(runAttempt, { ...manager.proven(), kind: "manager-run-attempt", attempt });
    const { evictions } = await person.ask(managerMaintainEvict, argsOf(manager, principals), { deadlineMs: 30_000 });
    expect(evictions).toMatchObject([{ principal, verifiedGone: true }]);
  });

  it("is for the own instance alone (check 1)", async () => {
    const { space, person, manager } = scene;
    const other = await space.manager(person, { upTo: "prepare" });
    await refused("permission-denied", { targetInstanceId: other.instanceId });
    await unchanged(space, "permission-denied", () =>
      person.ask(managerMaintainEvict, { ...argsOf(manager), targetInstanceId: other.instanceId }),
    );
  });

  it("wants a gate that is not retired, frozen is fine (check 2)", async () => {
    const { space, person, manager } = scene;
    await during(space, gateKeyOf(manager), retired(), () => refused("failed-precondition", {}));
    const nowhere = newUid(systemPorts);
    const unknown = { ...argsOf(manager), instanceId: nowhere, targetInstanceId: nowhere };
    await unchanged(space, "failed-precondition", () => person.ask(managerMaintainEvict, unknown));
    await during(space, gateKeyOf(manager), frozen(), async () => {
      const answer = await person.ask(managerMaintainEvict, argsOf(manager), { deadlineMs: 30_000 });
      expect(answer.evictions).toMatchObject([{ verifiedGone: true }]);
    });
  });

  it("wants the gate to be the owner's (check 3)", async () => {
    const { space, manager } = scene;
    const bob = await space.person("bob", { scope: ["supervise"] });
    await unchanged(space, "permission-denied", () => bob.ask(managerMaintainEvict, argsOf(manager)));
  });

  it("refuses all for one stranger (check 4)", async () => {
    const { space, person, manager } = scene;
    const other = await space.manager(person, { upTo: "prepare" });
    for (const stranger of [
      principalOf(person.owner, person.actor),
      own(other, "serve"),
      principalOf(person.owner, Actor.parse(`wf_${"0".repeat(12)}`)),
      `u_${"b".repeat(26)}.manager_${manager.instanceId}` as Principal,
      "local.auth" as Principal,
    ]) {
      await refused("permission-denied", { principals: [own(manager, "goalWriter"), stranger] });
    }
  });

  it("takes 1 to 256 distinct principals", async () => {
    const { manager } = scene;
    const many = Array.from({ length: 257 }, (_, n) => principalOf(manager.person.owner, Actor.parse(`a${n}`)));
    await refused("bad-request", { principals: [] });
    await refused("bad-request", { principals: many });
    await refused("bad-request", { principals: [own(manager, "serve"), own(manager, "serve")] });
  });

  it("runs once at a time for an instance, in one process (check 5)", async () => {
    const { person, manager } = scene;
    const asking = () => person.ask(managerMaintainEvict, argsOf(manager), { deadlineMs: 30_000 });
    const all = await Promise.allSettled([asking(), asking(), asking()]);
    const codes = all.map((one) => (one.status === "fulfilled" ? "ok" : (one.reason.code as string))).sort();
    expect(codes).toEqual(["ok", "resource-exhausted", "resource-exhausted"]);
    await asking();
  });

  it("gives a custodian's fault as data, in time, and never as success", async () => {
    const { space, person, manager } = scene;
    const [host] = space.hosts;
    await host?.service("custodian").close();
    const { evictions } = await person.ask(managerMaintainEvict, argsOf(manager), { deadlineMs: 1_000 });
    expect(evictions).toMatchObject([{ verifiedGone: false, scanComplete: false, kicked: 0 }]);
    expect(evictions[0]?.note).toBeTruthy();
  });
});
