import { afterAll, beforeAll, expect, it } from "vitest";
import { managerRenew } from "../../../../shared/contracts/auth/manager/renew.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import type { TestManager } from "../../../kit/manager.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { asks, hears } from "../hear.ts";
import { expectRow, itIssues, rowOf } from "../issuing.ts";

let space: TestSpace;
let manager: TestManager;

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange"] });
  manager = await space.manager(await space.person("alice", { scope: ["supervise"] }));
});
afterAll(() => space.stop());

const args = (of: TestManager): Input<typeof managerRenew> => ({
  ...of.envelope(),
  kind: "manager-service-authority",
  operation: "renew",
  registrationProof: of.proof,
});

itIssues({ operation: managerRenew, proof: "K", scene: () => ({ space, manager, person: manager.person }), args });

it.each([
  ["the manager itself", (request: ReturnType<typeof args>) => manager.client.call(managerRenew, request)],
  ["the person behind it", (request: ReturnType<typeof args>) => manager.person.ask(managerRenew, request)],
])("renews supervisor and executor for %s", async (_name, ask) => {
  const request = args(manager);
  const answer = await ask(request);
  const { supervisor, executor } = answer.credentials;
  expect(answer).toEqual({
    v: 1,
    kind: "manager-service-authority",
    operation: "renew",
    space: "demo",
    owner: manager.person.owner,
    actor: "cli",
    instanceId: manager.instanceId,
    lifecycleUid: manager.uid,
    requestId: request.requestId,
    registrationProof: manager.proof,
    issuedAt: expect.any(Number),
    expiresAt: Math.min(supervisor.exp, executor.exp) * 1_000,
    actors: {
      supervisor: `manager_${manager.instanceId}`,
      executor: `manager_exec_${manager.instanceId}`,
      serve: `manager_serve_${manager.instanceId}`,
      goalWriter: `manager_goal_${manager.instanceId}`,
      sessionLedger: `manager_session_${manager.instanceId}`,
    },
    identities: request.identities,
    credentials: { supervisor: { jwt: expect.any(String), exp: supervisor.exp }, executor: expect.anything() },
  });
  expect([supervisor.exp, executor.exp].map((exp) => exp - Math.floor(answer.issuedAt / 1_000))).toEqual([900, 300]);
  for (const role of ["supervisor", "executor"] as const) {
    await expectRow(space, manager, role, answer.credentials[role], { credentialKey: request.identities[role].id });
  }
});

it("gives credentials with which a manager asks and publishes", async () => {
  const { supervisor, executor } = (await manager.client.call(managerRenew, args(manager))).credentials;
  const asking = await manager.connectAs(supervisor.jwt, manager.keys.supervisor);
  const triple = `${manager.person.owner}.manager_${manager.instanceId}.${manager.uid}`;
  await hears(space.roots.space, asking, `cotal.demo.ep.one.auth.manager-renew.${triple}.${"n".repeat(22)}`);
  const publishing = await manager.connectAs(executor.jwt, manager.keys.executor);
  await asks(publishing, "STREAM.MSG.GET.KV_cotal_records_demo", {
    last_by_subj: `$KV.cotal_records_demo.svc.manager.${manager.instanceId}.spec`,
  });
});

it("issues anew at each repeat and leaves what was issued before", async () => {
  const request = args(manager);
  const [one, other] = [
    await manager.client.call(managerRenew, request),
    await manager.client.call(managerRenew, request),
  ];
  expect(one.credentials.supervisor.jwt).not.toBe(other.credentials.supervisor.jwt);
  for (const { supervisor } of [one.credentials, other.credentials]) {
    expect((await rowOf(space, manager, supervisor.jwt))?.value.state).toBe("active");
  }
});
