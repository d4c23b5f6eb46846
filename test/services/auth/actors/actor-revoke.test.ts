import { afterAll, beforeAll, expect, it } from "vitest";
import { actorGrant } from "../../../../shared/contracts/auth/actors/actor-grant.ts";
import { actorRevoke } from "../../../../shared/contracts/auth/actors/actor-revoke.ts";
import { interactiveRetireOpId } from "../../../../shared/credentials/roles.ts";
import { newNonce, systemPorts } from "../../../../shared/ports.ts";
import { actorRows } from "../../../../shared/rows/actor.ts";
import { credRows, epCredRows } from "../../../../shared/rows/credential.ts";
import { frontierRows } from "../../../../shared/rows/frontier.ts";
import { epGateRows, gateRows } from "../../../../shared/rows/gate.ts";
import { headRows } from "../../../../shared/rows/head.ts";
import { stageRows } from "../../../../shared/rows/stage.ts";
import type { RequestId, Triple } from "../../../../shared/tokens.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { connectIdentity, hangUp } from "../connections.ts";
import { MANAGER } from "../scene.ts";

let space: TestSpace;

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange", "callout"], authTimeoutS: 1 });
});
afterAll(() => space.stop());

const requestId = () => newNonce(systemPorts) as string as RequestId;
const args = ({ owner, actor, uid }: Triple) => ({ requestId: requestId(), owner, actor, lifecycleUid: uid });

it("denies a person everything, takes back what it had granted, and frees the alias", async () => {
  const person = await space.person("alice", { scope: ["supervise"] });
  const { owner, actor, uid } = person;
  const manager = await space.manager(person);
  await hangUp(manager);
  const serve = await connectIdentity(space, manager, "serve");
  const own = await person.connect();
  const gateBefore = await space.store.read(epGateRows.key({ endpoint: MANAGER, instanceId: manager.instanceId }));
  const opId = interactiveRetireOpId(uid);

  const answer = await space.operator.call(actorRevoke, args(person));

  expect(answer).toMatchObject({ owner, actor, lifecycleUid: uid, opId, revoked: true, retired: true });
  expect(answer.evictedPrincipals).toContain(`${owner}.${actor}`);
  expect(answer.evictedPrincipals).toContain(`${owner}.manager_serve_${manager.instanceId}`);
  await serve.closed();
  expect(own.connection.isClosed()).toBe(false);
  const { entries: creds } = await space.store.scan(credRows, { uid });
  const { entries: granted } = await space.store.scan(epCredRows, {
    endpoint: MANAGER,
    instanceId: manager.instanceId,
  });
  expect([...creds, ...granted].map(({ value }) => value.state)).toEqual([...creds, ...granted].map(() => "revoked"));
  expect(granted.length).toBeGreaterThanOrEqual(5);
  expect((await space.store.read(actorRows.key({ owner, actor })))?.value).toMatchObject({
    state: "revoked",
    revokedBy: "local.operator",
  });
  expect((await space.store.read(headRows.key({ owner, actor })))?.value.state).toBe("retired");
  expect((await space.store.read(gateRows.key({ uid })))?.value).toMatchObject({ state: "retired", op: { opId } });
  expect((await space.store.read(stageRows.key({ opId })))?.value.phase).toBe("finished");
  expect((await space.store.read(frontierRows.key({ uid })))?.value).toMatchObject({ lifecycleUid: uid, opId });
  const gateAfter = await space.store.read(epGateRows.key({ endpoint: MANAGER, instanceId: manager.instanceId }));
  expect(gateAfter?.value).toEqual(gateBefore?.value);
  expect(gateAfter?.revision).toBeGreaterThan(gateBefore?.revision ?? 0);

  expect(await space.operator.call(actorRevoke, args(person))).toMatchObject({ retired: true, opId });
  const again = await space.operator.call(actorGrant, {
    requestId: requestId(),
    owner,
    actor,
    scope: [],
    allowSubscribe: [],
    allowPublish: [],
  });
  expect(again.lifecycleUid).not.toBe(uid);
});
