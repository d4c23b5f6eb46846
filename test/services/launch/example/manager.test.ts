/** README's manager does in a space what README says. */
import type { NatsConnection } from "@nats-io/nats-core";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type Manager, startManager } from "../../../../services/launch/example/manager.ts";
import { SERVICES } from "../../../../services/service.ts";
import { newRunId } from "../../../../shared/manager/attempt.ts";
import { ManagerIdentity } from "../../../../shared/manager/identity.ts";
import { StandingCredentials } from "../../../../shared/manager/standing.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { admissionRows } from "../../../../shared/rows/admission.ts";
import { epCredRows } from "../../../../shared/rows/credential.ts";
import { headRows } from "../../../../shared/rows/head.ts";
import { startFace, type TestFace } from "../../../kit/face.ts";
import { ManagerContract } from "../../../kit/manager-contract.ts";
import type { Person } from "../../../kit/person.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { lifecycle } from "../../auth/lifecycles.ts";
import { MANAGER, stored } from "../../auth/scene.ts";

/** Short enough that its standing credentials are renewed while the tests run. */
const standingTtlS = 6;

let space: TestSpace;
let face: TestFace;
let alice: Person;
let manager: Manager;

beforeAll(async () => {
  space = await startSpace({ services: SERVICES, authTimeoutS: 1, change: () => ({ standingTtlS }) });
  face = await startFace(space);
  alice = await space.person("alice", { scope: ["supervise", "run"] });
  manager = await startManager(options());
});
afterAll(async () => {
  await manager.stop();
  await face.close();
  await space.stop();
});

const options = () => ({
  space: space.space,
  servers: space.servers,
  actor: alice.actor,
  url: `${face.url}/manager-service-authority`,
  capability: face.capability,
  idpToken: () => alice.idToken(),
  ports: systemPorts,
});

/** Somebody asks for a run, and the manager hears it. */
async function asked(runId = newRunId(systemPorts)) {
  const caller = await alice.callerOf({ instanceId: manager.instanceId, contract: new ManagerContract() });
  const subject = await caller.request("run-start", { runId });
  expect(await manager.asked.next()).toEqual({ done: false, value: { runId, subject } });
  return { runId, subject };
}
const credentials = async () =>
  (await space.store.scan(epCredRows, { endpoint: MANAGER, instanceId: manager.instanceId })).entries;

it("lets a run in that somebody asked for, drives it, and ends it", async () => {
  const { runId, subject } = await asked();
  const { admission } = await manager.admit(runId, subject);
  expect(admission).toEqual(await stored(space, admissionRows.key({ endpoint: MANAGER, runId })));
  const driver = await manager.attempt(runId);
  await driver.flush();
  await manager.revoke(runId, "enough");
  await driver.closed();
  await expect(manager.attempt(runId)).rejects.toMatchObject({ code: "permission-denied" });
});

it("retires an agent of its owner", async () => {
  const agent = await lifecycle(space, { owner: alice.owner });
  expect(await manager.retire(agent)).toMatchObject({ retired: true, lifecycleUid: agent.uid });
  expect(await stored(space, headRows.key(agent))).toMatchObject({ state: "retired" });
});

it("renews its credentials before they end, and goes on serving under them", async () => {
  const servers = async () => (await credentials()).filter(({ value }) => value.role === "serve");
  const first = Math.min(...(await servers()).map(({ value }) => value.exp));
  await vi.waitFor(() => expect(systemPorts.now()).toBeGreaterThan(first + 1_000), { timeout: 10_000, interval: 100 });
  expect((await servers()).some(({ value }) => value.state === "active" && value.exp > systemPorts.now())).toBe(true);
  const { runId, subject } = await asked();
  await manager.admit(runId, subject);
});

it("leaves no connection open where its start fails", async () => {
  const connect = vi.spyOn(StandingCredentials.prototype, "connect");
  const registration = vi.spyOn(ManagerIdentity.prototype, "registration").mockImplementationOnce(function (
    this: ManagerIdentity,
  ) {
    return { ...this.registration(), managerLifecycleUid: newUid(systemPorts) };
  });
  await expect(startManager(options())).rejects.toMatchObject({ code: "permission-denied" });
  const opened = await Promise.all(connect.mock.results.map(({ value }) => value as Promise<NatsConnection>));
  expect(opened.map((connection) => connection.isClosed())).toEqual([true, true]);
  connect.mockRestore();
  registration.mockRestore();
});
