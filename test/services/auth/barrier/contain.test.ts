import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { holderCredential, revokeRows } from "../../../../services/auth/barrier/contain.ts";
import type { Moment } from "../../../../services/auth/barrier/kinds.ts";
import { isAuthorityError } from "../../../../shared/errors.ts";
import { type Cred, credRows, type EpCred, epCredRows } from "../../../../shared/rows/credential.ts";
import type { Entry } from "../../../../shared/rows/family.ts";
import { type Gate, gateRows } from "../../../../shared/rows/gate.ts";
import { type Session, sessionRows } from "../../../../shared/rows/session.ts";
import { type Stage, stageRows } from "../../../../shared/rows/stage.ts";
import { create, swap, touch } from "../../../../shared/store/message.ts";
import { SessionId, type Uid } from "../../../../shared/tokens.ts";
import { type Broker, startBroker } from "../../../kit/broker.ts";
import { freshCredentialId, freshUid, frozenGate, MANAGER, PRINCIPAL, rootCred, serveCred } from "../../../kit/rows.ts";
import { openStore, type TestStore } from "../../../kit/store.ts";

let broker: Broker;
let store: TestStore;
let uid: Uid;
let opId: Uid;
let gate: Entry<Gate>;
let moments: Moment[];

beforeAll(async () => {
  broker = await startBroker();
  store = await openStore(broker.url, { streams: ["auth"] });
});
afterAll(async () => {
  await store.close();
  await broker.stop();
});

beforeEach(async () => {
  uid = freshUid();
  opId = freshUid();
  moments = [];
  const value = frozenGate(uid, opId);
  const revision = await store.put("auth", `gate.${uid}`, JSON.stringify(value));
  gate = { key: gateRows.key({ uid }), value, revision };
  await store.store.commit([create(stageRows.key({ opId }), stage())], store.work());
});

const stage = (): Stage => ({
  v: 1,
  opId,
  kind: "retirement",
  gate: `gate.${uid}`,
  fromGeneration: 1,
  principal: PRINCIPAL,
  evicted: [],
  startedBy: "test",
  at: 1,
  phase: "frozen",
});

/** Contains the lifecycle's own rows. */
function contain(rows = async () => (await store.store.scan(credRows, { uid })).entries as Entry<Cred | EpCred>[]) {
  const context = { store: store.store, afterStep: async ({ step }: { step: Moment }) => void moments.push(step) };
  const barrier = { kind: "retirement" as const, opId, fence: gate, rows, hold: <V>(work: () => Promise<V>) => work() };
  return revokeRows(context, barrier, store.work());
}

async function credential(more: Partial<Cred> = {}): Promise<Entry<Cred>> {
  const value = { ...rootCred(uid), credentialId: freshCredentialId(), ...more };
  const key = credRows.key({ uid, credentialId: value.credentialId });
  const [revision = 0] = await store.store.commit([create(key, value)], store.work());
  return { key, value, revision };
}

it("revokes every active row, and says which it revoked and which it found so", async () => {
  const before = await credential();
  await store.store.commit([swap(before, { ...before.value, state: "revoked" })], store.work());
  const active = [await credential(), await credential({ role: "root" })];
  const { rows, revoked } = await contain();
  expect(rows.map(({ value }) => value.state)).toEqual(["revoked", "revoked", "revoked"]);
  expect(revoked.map(({ key }) => key.key).sort()).toEqual(active.map(({ key }) => key.key).sort());
});

it("writes nothing where nothing is active", async () => {
  const before = await store.store.lastSeq("auth");
  expect(await contain()).toEqual({ rows: [], revoked: [] });
  expect(await store.store.lastSeq("auth")).toBe(before);
});

it("goes on until a scan shows none: a row that won against the freeze is found by the next", async () => {
  await credential();
  let scans = 0;
  const { rows } = await contain(async () => {
    scans += 1;
    if (scans === 2) await credential();
    return (await store.store.scan(credRows, { uid })).entries;
  });
  expect(rows).toHaveLength(2);
  expect(scans).toBe(3);
});

it("takes at most 250 rows in a commit, each of them under the fence", async () => {
  const values = Array.from({ length: 251 }, () => ({ ...rootCred(uid), credentialId: freshCredentialId() }));
  const messages = values.map((value) => create(credRows.key({ uid, credentialId: value.credentialId }), value));
  await store.store.commit(messages.slice(0, 250), store.work());
  await store.store.commit(messages.slice(250), store.work());
  const { revoked } = await contain();
  expect(revoked).toHaveLength(251);
  expect(moments).toEqual(["revoke", "revoke"]);
});

it("overlooks that a row was revoked by somebody else meanwhile", async () => {
  const row = await credential();
  let scans = 0;
  const { rows } = await contain(async () => {
    const { entries } = await store.store.scan(credRows, { uid });
    scans += 1;
    if (scans === 1) await store.store.commit([swap(row, { ...row.value, state: "revoked" })], store.work());
    return entries;
  });
  expect(rows.map(({ value }) => value.state)).toEqual(["revoked"]);
});

it("stops with `conflict` once the fence moved, and revokes nothing", async () => {
  const row = await credential();
  await store.store.commit([touch(gate)], store.work());
  const error = await contain().catch((thrown: unknown) => thrown);
  expect(isAuthorityError(error, "conflict")).toBe(true);
  expect((await store.store.read(row.key))?.value.state).toBe("active");
});

it.each(["finished", "aborted"] as const)("stops with `conflict` once the stage is %s", async (phase) => {
  const row = await credential();
  const key = stageRows.key({ opId });
  const found = await store.store.read(key);
  if (!found) return expect.unreachable();
  await store.store.commit([swap(found, { ...found.value, phase })], store.work());
  const error = await contain().catch((thrown: unknown) => thrown);
  expect(isAuthorityError(error, "conflict")).toBe(true);
  expect((await store.store.read(row.key))?.value.state).toBe("active");
});

it.each(["holder", "serving"] as const)("ends a session as a pair, whichever half it meets: the %s's", async (met) => {
  const instanceId = freshUid();
  const sessionId = SessionId.parse(`s${freshUid()}`);
  const sourceChain = [`session.${sessionId}`];
  const half = await credential({ role: "sessionHolder", credentialId: holderCredential(sessionId), sourceChain });
  const serving = serveCred(instanceId, { role: "sessionServing", sourceChain });
  const servingKey = epCredRows.key({ endpoint: MANAGER, instanceId, credentialId: serving.credentialId });
  const session: Session = {
    sessionId,
    endpoint: MANAGER,
    serving: { instanceId, epoch: 0 },
    holder: { principal: PRINCIPAL, lifecycleUid: uid },
    holderCredentialId: half.value.credentialId,
    servingCredentialId: serving.credentialId,
    grantSig: "sig",
    state: "active",
    exp: half.value.exp,
  };
  const key = sessionRows.key({ sessionId });
  const [servingAt = 0] = await store.store.commit([create(servingKey, serving), create(key, session)], store.work());
  const rows = async (): Promise<Entry<Cred | EpCred>[]> => {
    if (met === "holder") return (await store.store.scan(credRows, { uid })).entries;
    return (await store.store.scan(epCredRows, { endpoint: MANAGER, instanceId })).entries;
  };
  const { revoked } = await contain(rows);
  expect(revoked.map(({ key: { key: name } }) => name)).toEqual([met === "holder" ? half.key.key : servingKey.key]);
  const after = [await store.store.read(key), await store.store.read(half.key), await store.store.read(servingKey)];
  expect(after.map((row) => row?.value.state)).toEqual(["retired", "revoked", "revoked"]);
  const [first = 0, second = 0, third = 0] = after.map((row) => row?.revision).sort();
  expect([second, third]).toEqual([first + 1, first + 2]);
  expect(first).toBeGreaterThan(servingAt);
});
