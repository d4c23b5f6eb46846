import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sha256Hex } from "../../../../shared/canonical.ts";
import { agentEnroll } from "../../../../shared/contracts/auth/agents/enroll.ts";
import type { Input, Output } from "../../../../shared/contracts/operation.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { LIFE } from "../../../../shared/limits.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { actorRows } from "../../../../shared/rows/actor.ts";
import { credRows } from "../../../../shared/rows/credential.ts";
import { gateRows } from "../../../../shared/rows/gate.ts";
import { headRows } from "../../../../shared/rows/head.ts";
import { managerRows } from "../../../../shared/rows/manager.ts";
import { uidRows } from "../../../../shared/rows/uid.ts";
import { Actor, principalOf, Scope } from "../../../../shared/tokens.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { durables, makeMailboxes, removeMailboxes } from "../mailboxes.ts";
import { refusesStrangers, refusesUnregistered } from "../manager-refusals.ts";
import { during, frozen, gateKeyOf, proven, provenEcho, type Scene, startScene, stored } from "../scene.ts";

const publicUrl = "https://authority.example/prefix/?query#fragment";
const gateway = { loopbackPort: 7_777, publicPort: 7_778, publicUrl };
const granted = {
  scope: ["supervise", "run", "role:reviewer"],
  allowSubscribe: ["team.>", "general"],
  allowPublish: ["team.*"],
};

let scene: Scene;
beforeAll(async () => {
  scene = await startScene({ settings: { gateway } }, granted);
  await makeMailboxes(scene.space);
});
afterAll(() => scene.space.stop());

type Target = Partial<Input<typeof agentEnroll>["target"]>;
let agents = 0;
const fresh = (): Actor => {
  agents += 1;
  return Actor.parse(`agent_${agents}`);
};
const tokenHash = (token: string) => sha256Hex(token) as Input<typeof agentEnroll>["target"]["tokenHash"];

const argsOf = (manager: Scene["manager"], target: object = {}) => ({
  ...proven(manager, "manager-managed-agent-enrollment"),
  target: { actor: fresh(), tokenHash: tokenHash("secret"), ...target },
});
const enroll = (target: Target = {}): Promise<Output<typeof agentEnroll>> =>
  scene.manager.client.call(agentEnroll, argsOf(scene.manager, target) as Input<typeof agentEnroll>, { once: true });
const refused = (code: ErrorCode, target: object) => unchanged(scene.space, code, () => enroll(target as Target));

const wanted = {
  capabilities: [Scope.parse("run")],
  subscribe: ["team.build"],
  allowSubscribe: ["team.build", "general"],
  allowPublish: ["team.build"],
  role: "reviewer",
  label: "builds",
} as Target;

refusesStrangers(() => scene, agentEnroll, argsOf);
refusesUnregistered(() => scene, agentEnroll, argsOf);

describe("an enrollment", () => {
  it("makes five rows in one commit, the mailbox before them", async () => {
    const { space, person, manager } = scene;
    const before = (await sequences(space)).auth ?? 0;
    const request = argsOf(manager, wanted) as Input<typeof agentEnroll>;
    const { actor } = request.target;
    const { material, ...echo } = await manager.client.call(agentEnroll, request, { once: true });
    expect(echo).toEqual(provenEcho(manager, request));
    const { lifecycleUid } = material;
    expect(material).toEqual({
      owner: person.owner,
      actor,
      lifecycleUid,
      sentinelCreds: (await space.files.sentinel()).text,
      subscribe: wanted.subscribe,
      allowSubscribe: wanted.allowSubscribe,
      allowPublish: wanted.allowPublish,
      agentBearerExchangeUrl: "https://authority.example/prefix",
    });
    expect((await sequences(space)).auth).toBe(before + 5);

    const own = { owner: person.owner, actor, lifecycleUid };
    const principal = principalOf(person.owner, person.actor);
    const { grantedAt, ...row } = await stored(space, actorRows.key(own));
    expect(row).toEqual({
      ver: 1,
      ...own,
      kind: "managed",
      state: "active",
      scope: ["run"],
      allowSubscribe: wanted.allowSubscribe,
      allowPublish: wanted.allowPublish,
      role: "reviewer",
      label: "builds",
      parent: principal,
      tokenHash: tokenHash("secret"),
      grantedBy: principal,
    });
    expect(Math.abs(grantedAt - Date.now())).toBeLessThan(10_000);
    expect(await stored(space, uidRows.key({ uid: lifecycleUid }))).toEqual({
      owner: person.owner,
      actor,
      mintedBy: principal,
    });
    expect(await stored(space, gateRows.key({ uid: lifecycleUid }))).toEqual({
      lifecycleUid,
      state: "open",
      generation: 1,
    });
    const { currentCredentialId, ...head } = await stored(space, headRows.key(own));
    expect(head).toEqual({ ...own, managerInstance: manager.instanceId, processEpoch: 1, state: "active" });
    const { exp, ...root } = await stored(
      space,
      credRows.key({ uid: lifecycleUid, credentialId: currentCredentialId }),
    );
    expect(root).toMatchObject({ role: "root", state: "active", holderPrincipal: principalOf(own.owner, actor) });
    expect(Math.abs(exp - Date.now() - LIFE.rootMs)).toBeLessThan(10_000);
    const tail = `${person.owner}-${actor}-${lifecycleUid}`;
    expect(await durables(space)).toEqual(expect.arrayContaining([`dm_${tail}`, `dlv_${tail}`, "svc_reviewer"]));
  });

  it("reads what is left out as nothing", async () => {
    const { material } = await enroll();
    expect(material).toMatchObject({ subscribe: [], allowSubscribe: [], allowPublish: [] });
    const row = await stored(scene.space, actorRows.key(material));
    expect(row).toMatchObject({ scope: [], allowSubscribe: [], allowPublish: [] });
  });

  it("is the same through a gateway", async () => {
    const { person, manager } = scene;
    const request = argsOf(manager, { subscribe: [] }) as Input<typeof agentEnroll>;
    const { material } = await person.ask(agentEnroll, request);
    expect(material).toMatchObject({ owner: person.owner, actor: request.target.actor });
  });

  it("needs a public URL (check 2)", async () => {
    const other = await startScene();
    try {
      await unchanged(other.space, "failed-precondition", () =>
        other.manager.client.call(agentEnroll, argsOf(other.manager) as Input<typeof agentEnroll>, { once: true }),
      );
    } finally {
      await other.space.stop();
    }
  });

  it("takes no name that could pass as a gate's or a run's principal (check 3)", async () => {
    const { instanceId } = scene.manager;
    for (const actor of [
      `manager_${instanceId}`,
      `manager_serve_${instanceId}`,
      `auth_serve_${instanceId}`,
      "wf_0123456789ab",
    ]) {
      await refused("bad-request", { actor });
    }
    await enroll({ actor: Actor.parse("manager_of_builds") });
  });

  it("lets nobody read under a final *, which the broker takes for >", async () => {
    await refused("bad-request", { allowSubscribe: ["team.*"] });
  });

  it("never gives more than the supervising actor has (check 4)", async () => {
    for (const excess of [
      { capabilities: ["spawn"] },
      { capabilities: ["admin"] },
      { allowSubscribe: [">"] },
      { allowSubscribe: ["team"] },
      { allowPublish: ["team.>"] },
      { allowPublish: ["general"] },
      { role: "boss" },
      { subscribe: ["general"] },
      { subscribe: ["team.>"], allowSubscribe: ["team.build"] },
    ]) {
      await refused("permission-denied", excess);
    }
  });

  it("wants the granter for which the instance was prepared", async () => {
    const { space, manager } = scene;
    const { grantedBy } = await stored(space, managerRows.key(manager));
    const changed = { grantedBy: { ...grantedBy, lifecycleUid: newUid(systemPorts) } as typeof grantedBy };
    await during(space, managerRows.key(manager), changed, () =>
      unchanged(space, "permission-denied", () =>
        scene.person.ask(agentEnroll, argsOf(manager) as Input<typeof agentEnroll>),
      ),
    );
  });

  it("leaves a person's alias and another token's agent alone (check 5)", async () => {
    const other = await scene.space.person("alice", { actor: "second" });
    await refused("already-exists", { actor: other.actor });
    const { material } = await enroll();
    await refused("conflict", { actor: material.actor, tokenHash: tokenHash("another") });
  });

  it("waits until the former incarnation is retired, then draws another uid (check 6)", async () => {
    const { space } = scene;
    const { material: first } = await enroll();
    const { actor } = first;
    const [row, head] = await Promise.all([stored(space, actorRows.key(first)), stored(space, headRows.key(first))]);
    await space.put(actorRows.key(first), { ...row, state: "revoked" });
    const active = await refused("failed-precondition", { actor });
    expect(active.details).toEqual([{ kind: "ai.cotal.auth.current-lifecycle", lifecycleUid: first.lifecycleUid }]);
    const op = { opId: newUid(systemPorts), kind: "retirement" as const };
    await space.put(headRows.key(first), { ...head, state: "retiring", op });
    const held = await refused("failed-precondition", { actor });
    expect(held.details).toEqual([{ kind: "ai.cotal.auth.op-held", opId: op.opId, opKind: "retirement" }]);
    await space.put(headRows.key(first), { ...head, state: "retired" });
    const { material: second } = await enroll({ actor, tokenHash: tokenHash("another") });
    expect(second.lifecycleUid).not.toBe(first.lifecycleUid);
  });
});

describe("a repeated enrollment", () => {
  it("gives the same uid, the row's lists and the request's subscriptions, and writes nothing", async () => {
    const { space } = scene;
    const { material: first } = await enroll(wanted);
    const before = await sequences(space);
    const again = { actor: first.actor, allowSubscribe: ["team.>"], subscribe: ["team.a"] } as Target;
    const { material } = await enroll(again);
    expect(material).toEqual({ ...first, subscribe: ["team.a"] });
    expect(await sequences(space)).toEqual(before);
    await refused("permission-denied", { actor: first.actor, capabilities: ["spawn"] });
  });

  it("makes the mailbox again where it is gone", async () => {
    const { space } = scene;
    const { material } = await enroll();
    await removeMailboxes(space);
    await makeMailboxes(space);
    await enroll({ actor: material.actor });
    expect(await durables(space)).toHaveLength(2);
  });
});

describe("an enrollment whose commit is held up", () => {
  const meanwhile = async (change: (actor: Actor) => Promise<unknown>) => {
    const actor = fresh();
    const pause = pauseCommit(`actor.${scene.person.owner}.${actor}`);
    const outcome = enroll({ actor }).then(
      ({ material }) => material.lifecycleUid as string,
      (error: { code: string }) => error.code,
    );
    await pause.reached;
    await change(actor);
    pause.resume();
    return { actor, outcome: await outcome };
  };
  const nothingOf = async (actor: Actor) => {
    const { space, person } = scene;
    expect(await space.store.read(actorRows.key({ owner: person.owner, actor }))).toBeUndefined();
    expect(await durables(space, actor)).toEqual([]);
  };

  it("is refused once its parent is revoked, and leaves no mailbox", async () => {
    const { space, person } = scene;
    const row = await stored(space, actorRows.key(person));
    const { actor, outcome } = await meanwhile(() => space.put(actorRows.key(person), { ...row, state: "revoked" }));
    await space.put(actorRows.key(person), row);
    expect(outcome).toBe("permission-denied");
    await nothingOf(actor);
  });

  it("is refused once its manager's gate is frozen", async () => {
    const { space, manager } = scene;
    const gate = await stored(space, gateKeyOf(manager));
    const { actor, outcome } = await meanwhile(() => space.put(gateKeyOf(manager), { ...gate, ...frozen() }));
    await space.put(gateKeyOf(manager), gate);
    expect(outcome).toBe("failed-precondition");
    await nothingOf(actor);
  });

  it("is decided again once where parent and gate were only touched", async () => {
    const { space, person, manager } = scene;
    const { actor, outcome } = await meanwhile(async () => {
      await space.put(actorRows.key(person), await stored(space, actorRows.key(person)));
      await space.put(gateKeyOf(manager), await stored(space, gateKeyOf(manager)));
    });
    const row = await stored(space, actorRows.key({ owner: person.owner, actor }));
    expect(row.lifecycleUid).toBe(outcome);
    const tail = `${person.owner}-${actor}-${outcome}`;
    expect(await durables(space, actor)).toEqual([`dlv_${tail}`, `dm_${tail}`]);
  });

  it("meets a twin of itself and answers with that one's uid", async () => {
    let twin: string | undefined;
    const { outcome } = await meanwhile(async (actor) => {
      twin = (await enroll({ actor })).material.lifecycleUid;
    });
    expect(outcome).toBe(twin);
  });
});

describe("an enrollment without a mailbox", () => {
  it("is unavailable and makes nothing (check 7)", async () => {
    const { space } = scene;
    await removeMailboxes(space);
    await makeMailboxes(space, 1);
    await enroll();
    await refused("unavailable", {});
  });
});
