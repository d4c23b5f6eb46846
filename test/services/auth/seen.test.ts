/** What the one log line of each operation says (operations, before §1, and each row "seen"). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { authApi } from "../../../shared/contracts/auth.ts";
import type { Operation } from "../../../shared/contracts/operation.ts";
import { newNonce, newUid, systemPorts } from "../../../shared/ports.ts";
import { Actor, type Owner } from "../../../shared/tokens.ts";
import { freshRunId } from "../../kit/manager.ts";
import { startSpace } from "../../kit/space.ts";
import { CASES, enrolledAgent, type Scene } from "../../wire/roads.ts";
import {
  assignedManager,
  type Door,
  doorArgs,
  PLATFORM,
  platformArgs,
  supervisorArgs,
} from "./assignments/assigned.ts";
import { prepareOf } from "./assignments/doors.ts";
import { instance } from "./assignments/instances.ts";
import { freshOwner, lifecycle, named } from "./lifecycles.ts";
import { openSession } from "./manager/sessions.ts";
import { createJournals } from "./runs/runs.ts";
import { MANAGER } from "./scene.ts";

type Name = keyof typeof authApi;

let scene: Scene;
beforeAll(async () => {
  const space = await startSpace({
    services: ["custodian", "auth", "exchange", "callout"],
    authTimeoutS: 1,
    settings: { gateway: { loopbackPort: 1, publicPort: 2, publicUrl: "https://mesh.example" } },
  });
  const person = await space.person("alice", { scope: ["supervise", "run"] });
  const manager = await space.manager(person);
  await createJournals(space);
  const agent = await enrolledAgent({ person, manager });
  scene = { space, person, manager, caller: await person.callerOf(manager), agent };
});
afterAll(() => scene.space.stop());

const requestId = (): string => newNonce(systemPorts);

/** Asks the same again each time. */
type Ask = () => Promise<unknown>;

const asOperator = (name: Name, args: object): Ask => {
  const { operator } = scene.space;
  return () => operator.call<Operation>(authApi[name], args, { once: true });
};

/** The first case of an operation that has both roads, asked by the manager itself. */
async function byManager(name: Name): Promise<Ask> {
  const found = CASES.find(({ operation }) => operation === name);
  if (!found) throw new Error(`nobody asks for ${name}`);
  const args = await found.args(scene);
  return () => scene.manager.client.call<Operation>(authApi[name], args, { once: true });
}

/** A first request of a manager under an assignment. */
async function throughDoor(name: "platformControl" | "supervisorAuthority", owner: Owner): Promise<Ask> {
  const { space } = scene;
  const kind = name === "platformControl" ? "platform" : "supervisor";
  const door: Door = { space, host: await space.client("platform_host"), kind, owner };
  const args = await doorArgs(door, prepareOf(await assignedManager(door, { upTo: "none" })));
  return () => door.host.call<Operation>(authApi[name], args, { once: true });
}

/** Who asks for what has one road alone, and for more than both roads' cases ask. */
const ASKING: Partial<Record<Name, () => Ask | Promise<Ask>>> = {
  describe: () => () => scene.manager.client.call(authApi.describe, null),
  async managerRegister() {
    const fresh = await scene.space.manager(scene.person, { upTo: "publish" });
    return () => fresh.register();
  },
  async managerSessionEnd() {
    const { manager, person } = scene;
    const { sessionId } = await openSession(manager, person);
    const args = { v: 1, requestId: requestId(), actor: person.actor, sessionId, reason: "closed" };
    return () => manager.client.call<Operation>(authApi.managerSessionEnd, args);
  },
  runAdmit() {
    const { manager, caller } = scene;
    const runId = freshRunId();
    return async () => {
      const run = { runId, subject: await caller.request("run-start", { runId }) };
      const args = { ...manager.proven(), kind: "manager-run-admission", run };
      return manager.client.call<Operation>(authApi.runAdmit, args, { once: true });
    };
  },
  actorGrant() {
    const granted = { owner: freshOwner(), actor: "cli", scope: [], allowSubscribe: [], allowPublish: [] };
    return asOperator("actorGrant", { requestId: requestId(), ...granted });
  },
  actorList: () => asOperator("actorList", { requestId: requestId(), owner: scene.person.owner }),
  actorRenew: () => asOperator("actorRenew", { kind: "actor-renew", ...named(scene.person) }),
  actorRevoke: async () => asOperator("actorRevoke", named(await lifecycle(scene.space))),
  agentRetire: async () => asOperator("agentRetire", named(await lifecycle(scene.space))),
  async retireLifecycle() {
    const { space, person, manager } = scene;
    const { owner } = person;
    const target = await lifecycle(space, { owner });
    const serving = { serveEndpoint: MANAGER, serveInstanceId: manager.instanceId };
    const args = { opId: target.opId, ...serving, serveEpoch: manager.coordinates.processEpoch };
    const actor = Actor.parse(`manager_serve_${manager.instanceId}`);
    return () => space.clientAs({ owner, actor, uid: manager.uid }).call(authApi.retireLifecycle, args, { target });
  },
  drainAbandon() {
    const key = `oblig.${newUid(systemPorts)}.manager.x`;
    return asOperator("drainAbandon", { requestId: requestId(), opId: newUid(systemPorts), key, revision: 1 });
  },
  platformAssign: () => asOperator("platformAssign", platformArgs({ state: "revoked" })),
  supervisorAssign: () => asOperator("supervisorAssign", supervisorArgs(freshOwner())),
  platformControl: () => throughDoor("platformControl", PLATFORM),
  supervisorAuthority: () => throughDoor("supervisorAuthority", freshOwner()),
  async supervisorEnd() {
    const args = supervisorArgs(freshOwner());
    const { owner, instanceId } = args;
    await asOperator("supervisorAssign", args)();
    await asOperator("supervisorAssign", { ...args, state: "ended", expectedRevision: 1 })();
    return asOperator("supervisorEnd", { requestId: requestId(), owner, instanceId });
  },
  async instanceRetire() {
    const { instanceId } = await instance(scene.space, freshOwner());
    return asOperator("instanceRetire", { requestId: requestId(), endpoint: "manager", instanceId });
  },
};

/** What every line has. */
const FRAME = ["level", "time", "pid", "hostname", "msg", "op", "id", "caller", "code", "ms"];
const MANAGER_ASKS = "requestId holder owner actor instanceId";
const TARGET = "target lifecycleUid";
const ISSUED = "processEpoch roles exp revision";
const ENDED = "opId revokedRows evictedPrincipals evictionVerified";
const REFUSED = "outcome reason";

const SEEN: Readonly<Record<Name, string>> = {
  runAdmit: `${MANAGER_ASKS} runId processEpoch generation revision`,
  runRevoke: `${MANAGER_ASKS} runId processEpoch by first rows evicted revision`,
  runAttempt: `${MANAGER_ASKS} runId takeoverId epoch ${ISSUED}`,
  runOperator: `${MANAGER_ASKS} takeoverId form ${ISSUED}`,
  managerPrepare: `${MANAGER_ASKS} first ${ISSUED}`,
  managerRegister: `${MANAGER_ASKS} generation processEpoch revision`,
  managerActivate: `${MANAGER_ASKS} ${ISSUED}`,
  managerRenew: `${MANAGER_ASKS} ${ISSUED}`,
  managerTransferReader: `${MANAGER_ASKS} ${ISSUED}`,
  managerRenewStanding: `${MANAGER_ASKS} ${ISSUED}`,
  managerRenewRun: `${MANAGER_ASKS} runId takeoverId epoch ${ISSUED}`,
  managerSession: `${MANAGER_ASKS} ${TARGET} sessionId first ${ISSUED}`,
  managerSessionEnd: `${MANAGER_ASKS} ${TARGET} sessionId reason revision`,
  managerRetire: `${MANAGER_ASKS} ${TARGET} opId ${ISSUED}`,
  managerMaintainEvict: `${MANAGER_ASKS} targetInstanceId verifiedGone of`,
  managerMaintainReconcile: `${MANAGER_ASKS} targetInstanceId ${REFUSED}`,
  managerScanGoals: `${MANAGER_ASKS} processEpoch entries`,
  managerAuthorizeAdmin: `${MANAGER_ASKS} ${TARGET} processEpoch authorized`,
  agentValidateRetained: `${MANAGER_ASKS} ${TARGET} processEpoch`,
  agentRuntimeCreate: `${MANAGER_ASKS} ${TARGET} processEpoch ${REFUSED}`,
  agentRuntimeStatus: `${MANAGER_ASKS} ${TARGET} processEpoch ${REFUSED}`,
  agentEnroll: `${MANAGER_ASKS} ${TARGET} processEpoch revision`,
  agentPrepareRetirement: `${MANAGER_ASKS} ${TARGET} opId processEpoch revision`,
  retireLifecycle: `holder owner actor instanceId ${TARGET} opId processEpoch`,
  agentRetire: `requestId holder owner ${TARGET} opId`,
  drainAbandon: `requestId holder opId key ${REFUSED}`,
  actorGrant: `requestId holder owner ${TARGET} revision`,
  actorRenew: `requestId holder owner ${TARGET} exp renewed`,
  actorRevoke: `requestId holder owner ${TARGET} opId`,
  actorList: "requestId holder owner",
  platformAssign: "requestId holder owner instanceId lifecycleUid assignmentRevision state revision",
  supervisorAssign: "requestId holder owner instanceId lifecycleUid assignmentRevision state revision",
  platformControl: `${MANAGER_ASKS} inner first ${ISSUED}`,
  supervisorAuthority: `${MANAGER_ASKS} inner first ${ISSUED}`,
  supervisorEnd: `requestId holder owner instanceId ${ENDED}`,
  instanceRetire: `requestId holder instanceId ${ENDED}`,
  describe: "",
};

/** Those whose repeat is answered with what stands. */
const REPEATED: ReadonlySet<Name> = new Set<Name>([
  "runAdmit",
  "managerSessionEnd",
  "agentEnroll",
  "agentPrepareRetirement",
  "retireLifecycle",
  "agentRetire",
  "actorGrant",
  "actorRevoke",
  "platformAssign",
  "supervisorAssign",
  "supervisorEnd",
  "instanceRetire",
]);

/** Asks, and gives what the one line of it says beyond every line's frame. */
async function seenOf(name: Name, ask: Ask): Promise<Record<string, unknown>> {
  const lines = scene.space.hosts[0]?.lines ?? [];
  const from = lines.length;
  await ask().catch((error: { code?: string }) => {
    if (!SEEN[name].endsWith(REFUSED)) throw error;
  });
  const ours = () =>
    lines
      .slice(from)
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ op, msg }) => op === authApi[name].name && msg === "request");
  await expect.poll(ours).toHaveLength(1);
  const [line = {}] = ours();
  expect(JSON.stringify(line)).not.toMatch(/eyJ|S[UAX][A-Z2-7]{50}/);
  expect(Object.keys(line)).toEqual(expect.arrayContaining(FRAME));
  return Object.fromEntries(Object.entries(line).filter(([field]) => !FRAME.includes(field)));
}

it.each(Object.keys(authApi) as Name[])("%s: who, for whom, and what became of it", async (name) => {
  const ask = await (ASKING[name] ?? (() => byManager(name)))();
  const seen = await seenOf(name, ask);
  const fields = SEEN[name].split(" ").filter((field) => field !== "");
  expect(Object.keys(seen).sort()).toEqual(fields.sort());
  if (REPEATED.has(name)) expect(await seenOf(name, ask)).toMatchObject({ replayed: true });
});

it("a caller that is not admitted: what it asked for, and no holder", async () => {
  const { space, person, manager } = scene;
  const target = { ...named(person), kind: "actor-renew" as const };
  const stranger = space.clientAs({ owner: freshOwner(), actor: Actor.parse("cli"), uid: manager.uid });
  const seen = await seenOf("actorRenew", () =>
    stranger.call(authApi.actorRenew, target, { once: true }).catch(() => {}),
  );
  const { requestId: asked, lifecycleUid } = target;
  expect(seen).toEqual({
    requestId: asked,
    owner: person.owner,
    target: `${person.owner}.${person.actor}`,
    lifecycleUid,
    outcome: "not-executed",
    reason: expect.any(String),
  });
});
