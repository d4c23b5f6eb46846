import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { managerMaintainReconcile } from "../../../../shared/contracts/auth/maintain/reconcile.ts";
import { actorsOf } from "../../../../shared/credentials/roles.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { epCredRows } from "../../../../shared/rows/credential.ts";
import { type Stage, stageRows } from "../../../../shared/rows/stage.ts";
import { principalOf, type Uid } from "../../../../shared/tokens.ts";
import type { Host } from "../../../kit/hosting.ts";
import type { TestManager } from "../../../kit/manager.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { connectIdentity, hangUp } from "../connections.ts";
import { refusesStrangers } from "../manager-refusals.ts";
import { ask, during, frozen, gateKeyOf, MANAGER, retired, type Scene, startScene, stored } from "../scene.ts";

let scene: Scene;
let custodian: Host;
beforeAll(async () => {
  scene = await startScene({ services: ["auth", "exchange"], authTimeoutS: 1 });
  custodian = await scene.space.host(["custodian"]);
});
afterAll(() => scene.space.stop());

const argsOf = (manager: TestManager, targetInstanceId: Uid = manager.instanceId) => ({
  ...manager.envelope(),
  kind: "manager-service-maintenance" as const,
  operation: "reconcile-registration" as const,
  targetInstanceId,
});

/** A manager whose registration hangs: its gate is frozen, and its registrant has gone. */
async function hung(): Promise<{ manager: TestManager; opId: Uid }> {
  const { space, person } = scene;
  const manager = await space.manager(person, { upTo: "activate" });
  await hangUp(manager);
  const before = await stored(space, gateKeyOf(manager));
  const opId = newUid(systemPorts);
  const stage: Stage = {
    v: 1,
    opId,
    kind: "registration",
    gate: gateKeyOf(manager).key,
    fromGeneration: before.generation,
    principal: before.principal,
    evicted: [],
    startedBy: "test",
    at: 1,
    phase: "frozen",
  };
  await space.put(stageRows.key({ opId }), stage);
  await space.put(gateKeyOf(manager), { ...before, state: "frozen", op: { opId, kind: "registration" } });
  return { manager, opId };
}

const familyOf = async ({ instanceId }: TestManager) =>
  (await scene.space.store.scan(epCredRows, { endpoint: MANAGER, instanceId })).entries.map(({ value }) => value);

const SERVE_FAMILY = ["goalWriter", "serve", "sessionLedger"];

refusesStrangers(() => scene, managerMaintainReconcile, argsOf);

it("opens the gate one generation further, once everybody of the family is verified gone", async () => {
  const { space, person } = scene;
  const { manager, opId } = await hung();
  const { instanceId } = manager;
  const serve = await connectIdentity(space, manager, "serve");
  const before = await space.store.read(gateKeyOf(manager));
  if (!before) return expect.unreachable();
  const request = argsOf(manager);
  const { reconciliation, ...echo } = await person.ask(managerMaintainReconcile, request, { deadlineMs: 30_000 });
  await serve.closed();
  expect(echo).toEqual({ ...request, owner: person.owner });

  const { op: _op, ...coordinates } = before.value;
  const after = { ...coordinates, state: "open", generation: before.value.generation + 1 };
  const family = await familyOf(manager);
  const fallen = family.filter(({ role }) => SERVE_FAMILY.includes(role));
  const holders = [...new Set(fallen.map(({ holderPrincipal }) => holderPrincipal))].sort();
  expect({ ...reconciliation, revoked: reconciliation.revoked.toSorted() }).toEqual({
    endpoint: "manager",
    instanceId,
    holderPrincipal: principalOf(person.owner, actorsOf(instanceId).supervisor),
    opId,
    freezeToken: before.revision,
    before: before.value,
    after,
    liveness: { state: "gone", detail: "" },
    familyRows: fallen.length,
    revoked: fallen.map(({ credentialId }) => credentialId).sort(),
    evicted: expect.arrayContaining(holders),
    holders: expect.arrayContaining(holders),
    holdersVerifiedBeforeAttempt: [],
    holdersVerifiedThisAttempt: expect.arrayContaining(holders),
    holdersRemaining: [],
    repairCursorCleanup: "retained",
    reopenedAtGeneration: after.generation,
  });
  expect(fallen.map(({ state }) => state)).toEqual(fallen.map(() => "revoked"));
  const spared = family.filter(({ role }) => !SERVE_FAMILY.includes(role));
  expect(spared.length).toBeGreaterThan(0);
  expect(spared.every(({ state }) => state === "active")).toBe(true);
  expect(await stored(space, gateKeyOf(manager))).toEqual(after);
  expect(await stored(space, stageRows.key({ opId }))).toMatchObject({ phase: "aborted" });
  await unchanged(space, "failed-precondition", () => person.ask(managerMaintainReconcile, argsOf(manager)));
});

it("is for another instance of the own only if a person asks (check 1)", async () => {
  const { space, person, manager } = scene;
  const { manager: dead } = await hung();
  await unchanged(space, "permission-denied", () =>
    ask(manager, managerMaintainReconcile, argsOf(manager, dead.instanceId)),
  );
  const { reconciliation } = await person.ask(managerMaintainReconcile, argsOf(manager, dead.instanceId), {
    deadlineMs: 30_000,
  });
  expect(reconciliation.instanceId).toBe(dead.instanceId);
});

describe("is refused, with nothing written,", () => {
  const refused = (code: ErrorCode, manager: TestManager, as = scene.person) =>
    unchanged(scene.space, code, () => as.ask(managerMaintainReconcile, argsOf(manager)));

  it("where no registration hangs (check 2)", async () => {
    const { space, person, manager } = scene;
    await refused("failed-precondition", manager);
    await during(space, gateKeyOf(manager), frozen("retirement"), () => refused("failed-precondition", manager));
    await during(space, gateKeyOf(manager), retired(), () => refused("failed-precondition", manager));
    await unchanged(space, "failed-precondition", () =>
      person.ask(managerMaintainReconcile, argsOf(manager, newUid(systemPorts))),
    );
  });

  it("for another owner's instance", async () => {
    const { manager } = await hung();
    const bob = await scene.space.person("bob", { scope: ["supervise"] });
    await refused("permission-denied", manager, bob);
  });

  it("while the registrant is connected: it repeats its registration itself (check 3)", async () => {
    const { manager } = await hung();
    const supervisor = await connectIdentity(scene.space, manager, "supervisor");
    await refused("failed-precondition", manager);
    await supervisor.close();
  });

  it("while nobody can say that the registrant is gone (check 4)", async () => {
    const { space, person } = scene;
    const { manager } = await hung();
    await custodian.stop();
    await unchanged(space, "unavailable", () =>
      person.ask(managerMaintainReconcile, argsOf(manager), { deadlineMs: 700 }),
    );
    custodian = await space.host(["custodian"]);
  });
});

it("leaves the gate frozen while one of the family survives, and begins anew when it is asked again", async () => {
  const { space, person } = scene;
  const { manager, opId } = await hung();
  const serve = await manager.connection("serve"); // comes back by itself
  const first = await person.ask(managerMaintainReconcile, argsOf(manager), { deadlineMs: 30_000 }).catch((e) => e);
  expect(first).toMatchObject({ code: "unavailable", outcome: "unknown" });
  expect(await stored(space, gateKeyOf(manager))).toMatchObject({ state: "frozen", op: { opId } });
  expect(await stored(space, stageRows.key({ opId }))).toMatchObject({ phase: "frozen" });
  await serve.close();
  const { reconciliation } = await person.ask(managerMaintainReconcile, argsOf(manager), { deadlineMs: 30_000 });
  expect(reconciliation.revoked).toEqual([]);
  expect(reconciliation.familyRows).toBe(3);
});
