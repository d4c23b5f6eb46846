import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { holderCredential } from "../../../../services/auth/barrier/contain.ts";
import { actorGrant } from "../../../../shared/contracts/auth/actors/actor-grant.ts";
import { actorRevoke } from "../../../../shared/contracts/auth/actors/actor-revoke.ts";
import { interactiveRetireOpId } from "../../../../shared/credentials/roles.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { actorRows } from "../../../../shared/rows/actor.ts";
import { type Cred, credRows, epCredRows } from "../../../../shared/rows/credential.ts";
import { frontierRows } from "../../../../shared/rows/frontier.ts";
import { epGateRows, gateRows } from "../../../../shared/rows/gate.ts";
import { headRows } from "../../../../shared/rows/head.ts";
import { sessionRows } from "../../../../shared/rows/session.ts";
import { stageRows } from "../../../../shared/rows/stage.ts";
import { subjectOf } from "../../../../shared/store/streams.ts";
import { Actor, CredentialId, principalOf, Scope, SessionId, type Uid } from "../../../../shared/tokens.ts";
import { rootCred, serveCred } from "../../../kit/rows.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { connectIdentity, hangUp } from "../connections.ts";
import { credentialStates, lifecycle, named, requestId, rowsOf } from "../lifecycles.ts";
import { during, MANAGER, provisioned } from "../scene.ts";

let space: TestSpace;

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange", "callout"], authTimeoutS: 1 });
});
afterAll(() => space.stop());

it("denies a person everything, takes back what it had granted, and frees the alias", async () => {
  const person = await space.person("alice", { scope: ["supervise"] });
  const { owner, actor, uid } = person;
  const manager = await space.manager(person);
  await hangUp(manager);
  const serve = await connectIdentity(space, manager, "serve");
  const own = await person.connect();
  const gateBefore = await space.store.read(epGateRows.key({ endpoint: MANAGER, instanceId: manager.instanceId }));
  const opId = interactiveRetireOpId(uid);

  const answer = await space.operator.call(actorRevoke, named(person));

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

  expect(await space.operator.call(actorRevoke, named(person))).toMatchObject({ retired: true, opId });
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

it("is the end of an agent too, under the operation id of its kind", async () => {
  const agent = await lifecycle(space);
  const active = await lifecycle(space, { state: "active" });
  for (const of of [agent, active]) {
    expect(await space.operator.call(actorRevoke, named(of))).toMatchObject({ opId: of.opId, retired: true });
    expect(await rowsOf(space, of)).toMatchObject({ actor: { state: "revoked" }, head: { state: "retired" } });
    expect(await credentialStates(space, of)).toEqual(["revoked"]);
  }
});

it("is an administrator's to ask for, while the administrator's own row stands", async () => {
  const admin = await space.person("ada", { scope: ["admin"] });
  const { client } = await admin.connect({ view: "admin" });
  const person = await space.person("bob");
  expect(await client.call(actorRevoke, named(person))).toMatchObject({ retired: true });
  expect((await person.row())?.value).toMatchObject({ revokedBy: `${admin.owner}.${admin.actor}` });
  const other = await space.person("carol");
  const ask = () => client.call(actorRevoke, named(other), { once: true });
  const row = actorRows.key(admin);
  await during(space, row, { scope: [Scope.parse("supervise")] }, () => unchanged(space, "permission-denied", ask));
  await during(space, row, { state: "revoked" }, () => unchanged(space, "permission-denied", ask));
  await during(space, row, { lifecycleUid: newUid(systemPorts) }, () => unchanged(space, "expired", ask));
});

it("revokes a person's hand on a run, and evicts nobody for it", async () => {
  const person = await space.person("dora", { scope: ["supervise"] });
  const manager = await space.manager(person, { upTo: "prepare" });
  await hangUp(manager);
  const { instanceId } = manager;
  const hand = serveCred(instanceId, {
    role: "runOperator",
    holderPrincipal: principalOf(person.owner, Actor.parse("hand")),
    grantedBy: { kind: "actor", owner: person.owner, actor: person.actor, lifecycleUid: person.uid },
  });
  await space.put(epCredRows.key({ endpoint: MANAGER, instanceId, credentialId: hand.credentialId }), hand);
  const { evictedPrincipals } = await space.operator.call(actorRevoke, named(person));
  expect(evictedPrincipals).not.toContain(hand.holderPrincipal);
  expect(await credentialStates(space, { instanceId })).toEqual(["revoked", "revoked", "revoked"]);
});

it("ends the person's sessions, and leaves the managers that serve them connected", async () => {
  const person = await lifecycle(space, { kind: "interactive" });
  const { owner, actor, uid } = person;
  const instanceId = newUid(systemPorts);
  const sessionId = SessionId.parse(`s${newUid(systemPorts)}`);
  const sourceChain = [`session.${sessionId}`];
  const serving = serveCred(instanceId, { role: "sessionServing", sourceChain });
  const half: Cred = {
    ...rootCred(uid),
    role: "sessionHolder",
    credentialId: holderCredential(sessionId),
    holderPrincipal: principalOf(owner, actor),
    sourceChain,
  };
  await space.put(epCredRows.key({ endpoint: MANAGER, instanceId, credentialId: serving.credentialId }), serving);
  await space.put(credRows.key({ uid, credentialId: half.credentialId }), half);
  const key = sessionRows.key({ sessionId });
  await space.put(key, {
    sessionId,
    endpoint: MANAGER,
    serving: { instanceId, epoch: 0 },
    holder: { principal: half.holderPrincipal, lifecycleUid: uid },
    holderCredentialId: half.credentialId,
    servingCredentialId: serving.credentialId,
    grantSig: "sig",
    state: "active",
    exp: half.exp,
  });
  const { evictedPrincipals } = await space.operator.call(actorRevoke, named(person));
  expect(evictedPrincipals).toEqual([half.holderPrincipal]);
  expect((await space.store.read(key))?.value.state).toBe("retired");
  expect(await credentialStates(space, { instanceId })).toEqual(["revoked"]);
  expect(await credentialStates(space, { uid })).toEqual(["revoked", "revoked"]);
});

it("is not confirmed while a row under one of the person's managers is unreadable; another owner's is no matter", async () => {
  const person = await space.person("emil", { scope: ["supervise"] });
  const manager = await space.manager(person, { upTo: "prepare" });
  await hangUp(manager);
  const garbled = (instanceId: Uid) =>
    subjectOf("auth", space.space, `epcred.manager.${instanceId}.sha256-${"0".repeat(64)}`);
  const write = (subject: string, body: string) => space.roots.authority.request(subject, body, { timeout: 5_000 });
  await write(garbled(newUid(systemPorts)), "{");
  await write(garbled(manager.instanceId), "{");
  const unconfirmed = space.operator.call(actorRevoke, named(person), { deadlineMs: 1_500, once: true });
  await expect(unconfirmed).rejects.toMatchObject({ code: "unavailable", outcome: "unknown" });
  expect((await person.row())?.value.state).toBe("revoked");
  const { instanceId } = manager;
  const whole = serveCred(instanceId, { credentialId: CredentialId.parse(`sha256-${"0".repeat(64)}`) });
  await write(garbled(instanceId), JSON.stringify(whole));
  expect(await space.operator.call(actorRevoke, named(person))).toMatchObject({ retired: true });
});

describe("is refused, with nothing written,", () => {
  const refused = (code: ErrorCode, args: object) =>
    unchanged(space, code, () => space.operator.call(actorRevoke, args as never, { once: true }));

  it("for a row that is not there (check 1)", async () => {
    const person = await lifecycle(space, { kind: "interactive" });
    await refused("not-found", { ...named(person), actor: "nobody" });
  });

  it("for a row at another uid, which is named (check 2)", async () => {
    const person = await lifecycle(space, { kind: "interactive" });
    const error = await refused("expired", { ...named(person), lifecycleUid: newUid(systemPorts) });
    expect(error.details).toEqual([{ kind: "ai.cotal.auth.current-lifecycle", lifecycleUid: person.uid }]);
  });

  it("where the row is garbled or a marker", async () => {
    const person = await lifecycle(space, { kind: "interactive" });
    const subject = subjectOf("auth", space.space, actorRows.key(person).key);
    await space.roots.authority.request(subject, "{", { timeout: 5_000 });
    await refused("internal", named(person));
  });

  it("to anybody but the operator and an administrator", async () => {
    const person = await lifecycle(space, { kind: "interactive" });
    const operator = await provisioned(space, "operator");
    for (const caller of [
      person,
      { ...operator, uid: newUid(systemPorts) },
      await provisioned(space, "platform_host"),
    ]) {
      await unchanged(space, "permission-denied", () =>
        space.clientAs(caller).call(actorRevoke, named(person), { once: true }),
      );
    }
  });

  it("with a member too many or malformed", async () => {
    const person = await lifecycle(space, { kind: "interactive" });
    await refused("bad-request", { ...named(person), force: true });
    await refused("bad-request", { ...named(person), requestId: "short" });
  });
});
