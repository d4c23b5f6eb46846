import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { actorRenew } from "../../../../shared/contracts/auth/actors/actor-renew.ts";
import { exchangeUser } from "../../../../shared/contracts/exchange/exchange-user.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { LIFE } from "../../../../shared/limits.ts";
import { newNonce, newUid, systemPorts } from "../../../../shared/ports.ts";
import { type Actor as ActorRow, actorRows } from "../../../../shared/rows/actor.ts";
import { type Cred, credRows } from "../../../../shared/rows/credential.ts";
import { gateRows } from "../../../../shared/rows/gate.ts";
import { headRows } from "../../../../shared/rows/head.ts";
import { Actor, type Principal, type RequestId } from "../../../../shared/tokens.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import type { Person } from "../../../kit/person.ts";
import type { TestSpace } from "../../../kit/space.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { activate, agentOf, scopes } from "../../exchange/ledger.ts";
import { ask, during, frozen, gateKeyOf, retired, type Scene, startScene, stored } from "../scene.ts";

type Args = Input<typeof actorRenew>;
type Incarnation = Pick<ActorRow, "owner" | "actor" | "lifecycleUid">;

const DAY_MS = 86_400_000;
const OLD_MS = LIFE.rootMs - LIFE.rootRenewFromMs - DAY_MS;

let scene: Scene;
let space: TestSpace;
let parent: ActorRow;
beforeAll(async () => {
  scene = await startScene({}, { scope: ["supervise", "run"], allowSubscribe: ["team.>"] });
  ({ space } = scene);
  parent = await stored(space, actorRows.key(scene.person));
});
afterAll(() => space.stop());

const argsOf = ({ owner, actor, lifecycleUid }: Incarnation): Args => ({
  kind: "actor-renew",
  requestId: newNonce(systemPorts) as string as RequestId,
  owner,
  actor,
  lifecycleUid,
});
const asOperator = (of: Incarnation, more: object = {}) =>
  space.operator.call(actorRenew, { ...argsOf(of), ...more }, { once: true });
const refused = (code: ErrorCode, of: Incarnation, more: object = {}) =>
  unchanged(space, code, () => asOperator(of, more));

const incarnationOf = ({ owner, actor, uid }: Person): Incarnation => ({ owner, actor, lifecycleUid: uid });
let names = 0;
async function somebody(granted: Parameters<TestSpace["person"]>[1] = {}): Promise<Person> {
  names += 1;
  return space.person(`person-${names}`, granted);
}
async function agent(row: Partial<ActorRow> = {}, root: Partial<Cred> = old()): Promise<ActorRow> {
  names += 1;
  return activate(space, scene.person.owner, `agent_${names}`, { row: agentOf(parent, row), root });
}

async function rootKeyOf(of: Incarnation) {
  const { currentCredentialId: credentialId } = await stored(space, headRows.key(of));
  return credRows.key({ uid: of.lifecycleUid, credentialId });
}
const old = (): Partial<Cred> => ({ exp: Date.now() + OLD_MS });
/** As if it had been granted 61 days ago. */
async function age(of: Incarnation): Promise<void> {
  const key = await rootKeyOf(of);
  await space.put(key, { ...(await stored(space, key)), ...old() });
}

describe("a renewal of a root", () => {
  it("is one commit of the next root, the head that names it, and the old one's end", async () => {
    const person = await somebody();
    const of = incarnationOf(person);
    await age(of);
    const [former, head] = [await rootKeyOf(of), await stored(space, headRows.key(of))];
    const before = (await sequences(space)).auth ?? 0;
    const answer = await asOperator(of);
    expect((await sequences(space)).auth).toBe(before + 3);
    expect(answer).toMatchObject({ ...of, renewed: true });
    expect(Math.abs(answer.exp - Date.now() - LIFE.rootMs)).toBeLessThan(10_000);
    const next = await rootKeyOf(of);
    expect(next.key).not.toBe(former.key);
    expect(await stored(space, headRows.key(of))).toEqual({
      ...head,
      currentCredentialId: next.key.split(".").at(-1),
    });
    const root = await stored(space, next);
    expect(root).toEqual({
      credentialId: next.key.split(".").at(-1),
      role: "root",
      holderPrincipal: `${of.owner}.${of.actor}`,
      lifecycleUid: of.lifecycleUid,
      sourceChain: ["root"],
      generation: 1,
      state: "active",
      exp: answer.exp,
    });
    expect((await stored(space, former)).state).toBe("revoked");
    const { token } = await space.gateway.call(exchangeUser, { actor: of.actor }, { auth: person.idToken() });
    const [, claims = ""] = token.split(".");
    expect(Buffer.from(claims, "base64url").toString()).toContain(root.credentialId);
  });

  it("changes nothing on day 1, nor with more than 30 days left", async () => {
    const of = incarnationOf(await somebody());
    const exp = (await stored(space, await rootKeyOf(of))).exp;
    const before = await sequences(space);
    expect(await asOperator(of)).toMatchObject({ exp, renewed: false });
    expect(await sequences(space)).toEqual(before);
    const key = await rootKeyOf(of);
    const left = { exp: Date.now() + 30 * DAY_MS + 60_000 };
    await space.put(key, { ...(await stored(space, key)), ...left });
    expect(await asOperator(of)).toMatchObject({ ...left, renewed: false });
    await space.put(key, { ...(await stored(space, key)), exp: Date.now() + 30 * DAY_MS - 1_000 });
    const { exp: next } = await asOperator(of);
    const after = await sequences(space);
    expect(await asOperator(of)).toMatchObject({ exp: next, renewed: false });
    expect(await sequences(space)).toEqual(after);
  });

  it("is done once where two ask at once", async () => {
    const of = incarnationOf(await somebody());
    await age(of);
    const pause = pauseCommit(`cred.${of.lifecycleUid}.`);
    const late = asOperator(of);
    await pause.reached;
    const first = await asOperator(of);
    pause.resume();
    expect(first.renewed).toBe(true);
    expect(await late).toMatchObject({ exp: first.exp, renewed: false });
  });

  it("is refused where the gate is frozen while it is decided", async () => {
    const of = incarnationOf(await somebody());
    await age(of);
    const pause = pauseCommit(`cred.${of.lifecycleUid}.`);
    const late = asOperator(of).catch((error: { code: string }) => error.code);
    await pause.reached;
    const key = gateRows.key({ uid: of.lifecycleUid });
    await space.put(key, { ...(await stored(space, key)), ...frozen("retirement") });
    pause.resume();
    expect(await late).toBe("failed-precondition");
  });
});

describe("who may renew", () => {
  it("is an administrator, for any row", async () => {
    const admin = await somebody({ scope: ["admin"] });
    const of = incarnationOf(await somebody());
    await age(of);
    const client = space.clientAs(admin);
    expect(await client.call(actorRenew, argsOf(of), { once: true })).toMatchObject({ renewed: true });
    const ask = () => client.call(actorRenew, argsOf(of), { once: true });
    for (const change of [{ scope: scopes("supervise", "run", "spawn") }, { state: "revoked" as const }]) {
      await during(space, actorRows.key(admin), change, () => unchanged(space, "permission-denied", ask));
    }
    const former = space.clientAs({ ...admin, uid: newUid(systemPorts) });
    await unchanged(space, "expired", () => former.call(actorRenew, argsOf(of), { once: true }));
  });

  it("is a person for the own row, without any scope", async () => {
    const person = await somebody();
    const of = incarnationOf(person);
    await age(of);
    expect(await person.ask(actorRenew, argsOf(of))).toMatchObject({ ...of, renewed: true });
    const other = incarnationOf(await somebody());
    await unchanged(space, "permission-denied", () => person.ask(actorRenew, argsOf(other)));
    const unknown = { ...of, actor: Actor.parse("nobody") };
    await unchanged(space, "permission-denied", () => person.ask(actorRenew, argsOf(unknown)));
    const loginless = () => space.gateway.call(actorRenew, argsOf(of), { once: true });
    await unchanged(space, "unauthenticated", loginless);
  });

  it("is no person for an agent: a managed row in place of an interactive one", async () => {
    const row = await agent();
    await unchanged(space, "permission-denied", () => scene.person.ask(actorRenew, argsOf(row)));
  });

  it("is a manager for the agents of the actor who granted it (check 1)", async () => {
    const row = await agent();
    const renewed = await scene.manager.client.call(actorRenew, argsOf(row), { once: true });
    expect(renewed).toMatchObject({ actor: row.actor, renewed: true });
    const denied = (of: Incarnation) =>
      unchanged(space, "permission-denied", () => ask(scene.manager, actorRenew, argsOf(of)));
    const { owner } = scene.person;
    await denied(await agent({ parent: `${owner}.another` as Principal }));
    await denied(incarnationOf(scene.person));
    await denied(incarnationOf(await somebody()));
    await unchanged(space, "not-found", () =>
      ask(scene.manager, actorRenew, argsOf({ ...row, actor: Actor.parse("nobody") })),
    );
    await during(space, actorRows.key(parent), { scope: scopes("run") }, () => denied(row));
    await during(space, actorRows.key(parent), { state: "revoked" }, () => denied(row));
  });

  it("is no manager whose instance was ended, though its connection stands", async () => {
    const row = await agent();
    const renew = () => ask(scene.manager, actorRenew, argsOf(row));
    await during(space, gateKeyOf(scene.manager), retired(), () => unchanged(space, "permission-denied", renew));
    await during(space, gateKeyOf(scene.manager), frozen(), renew);
  });

  it("is nobody else (C2)", async () => {
    const of = incarnationOf(await somebody());
    const [plain, { owner }] = [await somebody({ scope: ["supervise", "run", "spawn"] }), scene.person];
    const serving = Actor.parse(`manager_serve_${scene.manager.instanceId}`);
    for (const caller of [plain, { owner, actor: serving, uid: scene.manager.uid }]) {
      const client = space.clientAs(caller);
      await unchanged(space, "permission-denied", () => client.call(actorRenew, argsOf(of), { once: true }));
    }
  });
});

describe("what is not renewed", () => {
  it("is an absent or revoked row (check 2)", async () => {
    const of = incarnationOf(await somebody());
    await age(of);
    await refused("not-found", { ...of, actor: Actor.parse("nobody") });
    await during(space, actorRows.key(of), { state: "revoked" }, () => refused("permission-denied", of));
  });

  it("is another incarnation, of row or head (check 3)", async () => {
    const of = incarnationOf(await somebody());
    await age(of);
    await refused("expired", { ...of, lifecycleUid: newUid(systemPorts) });
    await during(space, headRows.key(of), { lifecycleUid: newUid(systemPorts) }, () => refused("expired", of));
  });

  it("is a frozen one, on day 1 too, and a root that lapsed, was revoked or is gone (check 4)", async () => {
    const of = incarnationOf(await somebody());
    const gate = gateRows.key({ uid: of.lifecycleUid });
    await during(space, gate, frozen("retirement"), () => refused("failed-precondition", of));
    await age(of);
    await during(space, gate, frozen("retirement"), () => refused("failed-precondition", of));
    const key = await rootKeyOf(of);
    await during(space, key, { state: "revoked" }, () => refused("failed-precondition", of));
    const lapsed = await agent({}, { exp: Date.now() - 1 });
    await refused("failed-precondition", lapsed);
    const { currentCredentialId } = await stored(space, headRows.key(of));
    const other = `${currentCredentialId.slice(0, -1)}${currentCredentialId.endsWith("0") ? "1" : "0"}`;
    await during(space, headRows.key(of), { currentCredentialId: other as typeof currentCredentialId }, () =>
      refused("failed-precondition", of),
    );
  });

  it("is an agent that its parents do not cover (check 5)", async () => {
    const row = await agent({ scope: scopes("run") });
    await during(space, actorRows.key(parent), { scope: scopes("supervise") }, () => refused("permission-denied", row));
    await during(space, actorRows.key(row), { scope: scopes("admin") }, () => refused("permission-denied", row));
    expect(await asOperator(row)).toMatchObject({ renewed: true });
  });

  it("is anything beyond the closed arguments", async () => {
    const of = incarnationOf(await somebody());
    await refused("bad-request", of, { kind: "actor-grant" });
    await refused("bad-request", of, { by: "me" });
  });
});
