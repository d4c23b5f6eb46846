import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SERVICES } from "../../../../services/service.ts";
import type { AuthorityClient } from "../../../../shared/client.ts";
import { actorGrant } from "../../../../shared/contracts/auth/actors/actor-grant.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { LIFE } from "../../../../shared/limits.ts";
import { newNonce, newUid, systemPorts } from "../../../../shared/ports.ts";
import { actorRows } from "../../../../shared/rows/actor.ts";
import { credRows } from "../../../../shared/rows/credential.ts";
import { gateRows } from "../../../../shared/rows/gate.ts";
import { headRows } from "../../../../shared/rows/head.ts";
import { uidRows } from "../../../../shared/rows/uid.ts";
import {
  Actor,
  Hex64,
  type Owner,
  PlatformOwner,
  type RequestId,
  Scope,
  type Triple,
  Uid,
} from "../../../../shared/tokens.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import type { Person } from "../../../kit/person.ts";
import { stranger } from "../../../kit/rail.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { durables, makeMailboxes } from "../mailboxes.ts";
import { during, stored } from "../scene.ts";

type Args = Input<typeof actorGrant>;

let space: TestSpace;
/** Holds the scope admin, and is connected under the view admin. */
let admin: Person;
let administering: AuthorityClient;

beforeAll(async () => {
  space = await startSpace({ services: SERVICES, replicas: 2 });
  await makeMailboxes(space);
  admin = await space.person("admin", { scope: ["admin"] });
  administering = (await admin.connect({ view: "admin" })).client;
});
afterAll(() => space.stop());

const args = (owner: Owner = stranger().owner, change: object = {}): Args => ({
  requestId: newNonce(systemPorts) as string as RequestId,
  owner,
  actor: Actor.parse("cli"),
  scope: ["supervise", "run"].map((scope) => Scope.parse(scope)),
  allowSubscribe: ["general", "team.>"] as never[],
  allowPublish: ["general"] as never[],
  ...change,
});
const grant = (request: Args, by = space.operator) => by.call(actorGrant, request, { once: true });
const refused = (code: ErrorCode, request: Args, by = space.operator) =>
  unchanged(space, code, () => grant(request, by));
const keysOf = ({ owner, actor, uid }: Triple) => ({
  row: actorRows.key({ owner, actor }),
  head: headRows.key({ owner, actor }),
  gate: gateRows.key({ uid }),
  owner: uidRows.key({ uid }),
});
const triple = async (request: Args): Promise<Triple> => {
  const { lifecycleUid: uid } = await grant(request);
  return { owner: request.owner, actor: request.actor, uid };
};

describe("the caller", () => {
  const as = (code: ErrorCode, caller: Triple, request = args()) =>
    unchanged(space, code, () => space.clientAs(caller).call(actorGrant, request, { once: true }));

  it("is the operator, or an administrator on the own connection", async () => {
    await as("permission-denied", await space.provisioned("gateway_loopback"));
    await as("permission-denied", await space.provisioned("platform_host"));
    await as("permission-denied", { ...(await space.provisioned("operator")), uid: newUid(systemPorts) });
    await as("permission-denied", stranger());
    await as("permission-denied", await space.person("bob", { scope: ["supervise", "spawn", "run"] }));
    await as("permission-denied", { ...admin, actor: Actor.parse(`manager_${newUid(systemPorts)}`) });
    await as("expired", { ...admin, uid: newUid(systemPorts) });
  });

  it("is an administrator as long as that row is interactive and active", async () => {
    const key = actorRows.key(admin);
    for (const change of [
      { state: "revoked" as const },
      { scope: [] },
      { kind: "managed" as const, tokenHash: Hex64.parse("0".repeat(64)) },
    ]) {
      await during(space, key, change, () => refused("permission-denied", args(), administering));
    }
  });
});

describe("the arguments", () => {
  it("name a person, and three lists of 64 at most", async () => {
    for (const change of [
      { owner: "local" },
      { owner: PlatformOwner.parse(`p_${"a".repeat(26)}`) },
      { actor: "a-b" },
      { scope: undefined },
      { allowSubscribe: undefined },
      { allowPublish: undefined },
      { scope: ["everything"] },
      { scope: ["role:"] },
      { allowPublish: ["a..b"] },
      { allowSubscribe: [">.a"] },
      { allowPublish: Array.from({ length: 65 }, (_, at) => `channel-${at}`) },
      { label: "x".repeat(129) },
      { role: "a.b" },
      { lifecycleUid: newUid(systemPorts) },
      { kind: "managed" },
    ]) {
      await refused("bad-request", args(undefined, change));
    }
  });

  it("never let read under a final *, which the broker takes for >", async () => {
    for (const pattern of ["*", "team.*", "team.*.*"]) {
      await refused("bad-request", args(undefined, { allowSubscribe: [pattern] }));
    }
    await grant(args(undefined, { allowSubscribe: ["team.*.news"], allowPublish: ["team.*"] }));
  });

  it("never name a derived principal (1)", async () => {
    const uid = newUid(systemPorts);
    const derived = ["manager", "manager_exec", "manager_serve", "manager_goal", "manager_session", "auth_serve"];
    for (const actor of [...derived.map((name) => `${name}_${uid}`), `wf_${"0a".repeat(6)}`]) {
      await refused("bad-request", args(undefined, { actor }));
    }
    const near = await grant(args(undefined, { actor: "manager_x" }));
    expect(near.actor).toBe("manager_x");
  });
});

describe("a grant", () => {
  it("makes an incarnation: five rows in one commit, under a fresh uid", async () => {
    const before = await sequences(space);
    const request = args(undefined, { label: "at the terminal", role: "reviewer" });
    const answer = await grant(request);
    const { owner, actor, lifecycleUid: uid, grantedAt } = answer;
    expect(answer).toEqual({
      requestId: request.requestId,
      owner: request.owner,
      actor: "cli",
      lifecycleUid: expect.stringMatching(/^[a-z0-9]{26,32}$/),
      grantedAt: expect.any(Number),
    });
    expect(await sequences(space)).toEqual({ ...before, auth: (before.auth ?? 0) + 5 });
    const keys = keysOf({ owner, actor, uid });
    const { requestId: _, ...granted } = request;
    expect(await stored(space, keys.row)).toEqual({
      ...granted,
      ver: 1,
      kind: "interactive",
      state: "active",
      lifecycleUid: uid,
      grantedAt,
      grantedBy: "local.operator",
    });
    const head = await stored(space, keys.head);
    expect(head).toMatchObject({ lifecycleUid: uid, state: "active", processEpoch: 1, managerInstance: "" });
    expect(await stored(space, keys.gate)).toEqual({ lifecycleUid: uid, state: "open", generation: 1 });
    expect(await stored(space, keys.owner)).toEqual({ owner, actor, mintedBy: "local.operator" });
    const root = await stored(space, credRows.key({ uid, credentialId: head.currentCredentialId }));
    expect(root).toMatchObject({ role: "root", state: "active", holderPrincipal: `${owner}.cli`, lifecycleUid: uid });
    expect(Math.abs(root.exp - grantedAt - LIFE.rootMs)).toBeLessThan(1_000);
  });

  it("makes the places in which its messages wait, and a role's that is shared", async () => {
    const request = args(undefined, { actor: "hears", role: "scribe" });
    const { owner, lifecycleUid: uid } = await grant(request);
    expect(await durables(space, "hears")).toEqual([`dlv_${owner}-hears-${uid}`, `dm_${owner}-hears-${uid}`]);
    expect(await durables(space)).toContain("svc_scribe");
  });

  it("is an administrator's, too, for whomever else", async () => {
    const { owner, actor, lifecycleUid: uid } = await grant(args(), administering);
    expect((await stored(space, keysOf({ owner, actor, uid }).row)).grantedBy).toBe(`${admin.owner}.cli`);
    expect((await grant(args(admin.owner, { actor: "second" }), administering)).owner).toBe(admin.owner);
  });

  it("is never an administrator's own, not even the same (2)", async () => {
    const row = await stored(space, actorRows.key(admin));
    const { scope, allowPublish, allowSubscribe } = row;
    await refused("permission-denied", args(admin.owner, { scope, allowPublish, allowSubscribe }), administering);
    const same = await grant(args(admin.owner, { scope, allowPublish, allowSubscribe }));
    expect(same.lifecycleUid).toBe(admin.uid);
  });

  it("falls with the administrator who gives it, and leaves nothing behind", async () => {
    const chief = await space.person("chief", { scope: ["admin"] });
    const { client } = await chief.connect({ view: "admin" });
    const request = args(undefined, { actor: "lost" });
    const pause = pauseCommit(actorRows.key({ owner: request.owner, actor: request.actor }).key);
    const answer = grant(request, client);
    answer.catch(() => {});
    await pause.reached;
    const row = await stored(space, actorRows.key(chief));
    await space.put(actorRows.key(chief), { ...row, state: "revoked", revokedAt: 1, revokedBy: row.grantedBy });
    await unchanged(space, "conflict", () => {
      pause.resume();
      return answer;
    });
    expect(await durables(space, "lost")).toEqual([]);
    await refused("permission-denied", request, client);
  });
});

describe("an alias that is taken", () => {
  it("by an agent is the agent's (3)", async () => {
    const request = args();
    const who = await triple(request);
    const managed = { kind: "managed" as const, tokenHash: Hex64.parse("0".repeat(64)) };
    await during(space, keysOf(who).row, managed, () => refused("already-exists", request));
    const revoked = { ...managed, state: "revoked" as const };
    await during(space, keysOf(who).row, revoked, () => refused("already-exists", request));
  });

  it("with other content names the incarnation that holds it (4)", async () => {
    const request = args(undefined, { role: "reviewer", label: "a" });
    const who = await triple(request);
    for (const change of [
      { scope: [] },
      { scope: [...request.scope, "spawn"] },
      { allowSubscribe: ["general"] },
      { allowPublish: [] },
      { role: "other" },
      { role: undefined },
      { label: "b" },
      { label: undefined },
    ]) {
      const error = await refused("failed-precondition", { ...request, ...change } as Args);
      expect(error.details).toEqual([{ kind: "ai.cotal.auth.current-lifecycle", lifecycleUid: who.uid }]);
    }
  });

  it("with the same content is answered as it stands, its lists being sets", async () => {
    const request = args();
    const who = await triple(request);
    const before = await sequences(space);
    const reordered = {
      ...request,
      scope: [...request.scope].reverse(),
      allowPublish: ["general", "general"] as never[],
    };
    for (const again of [request, reordered]) expect((await grant(again)).lifecycleUid).toBe(who.uid);
    expect(await sequences(space)).toEqual(before);
  });

  it("without a live root counts as other content (4)", async () => {
    const request = args();
    const who = await triple(request);
    const { currentCredentialId: credentialId } = await stored(space, keysOf(who).head);
    const root = credRows.key({ uid: who.uid, credentialId });
    const row = await stored(space, root);
    await space.put(root, { ...row, state: "revoked" });
    await refused("failed-precondition", request);
    await space.put(root, { ...row, exp: Date.now() - 1 });
    await refused("failed-precondition", request);
  });

  it("by an operation or an incarnation that is not retired yet says which (4)", async () => {
    const request = args();
    const who = await triple(request);
    const keys = keysOf(who);
    const { grantedBy } = await stored(space, keys.row);
    const op = { opId: newUid(systemPorts), kind: "retirement" as const };
    await during(space, keys.row, { state: "revoked", revokedAt: 1, revokedBy: grantedBy }, async () => {
      await during(space, keys.head, { state: "retiring", op }, async () => {
        const error = await refused("failed-precondition", request);
        expect(error.details).toEqual([{ kind: "ai.cotal.auth.op-held", opId: op.opId, opKind: "retirement" }]);
      });
      const error = await refused("failed-precondition", request);
      expect(error.details).toEqual([{ kind: "ai.cotal.auth.current-lifecycle", lifecycleUid: who.uid }]);
    });
  });

  it("by an incarnation that is retired is given anew", async () => {
    const request = args();
    const who = await triple(request);
    const keys = keysOf(who);
    const { grantedBy } = await stored(space, keys.row);
    await space.put(keys.row, {
      ...(await stored(space, keys.row)),
      state: "revoked",
      revokedAt: 1,
      revokedBy: grantedBy,
    });
    await space.put(keys.head, { ...(await stored(space, keys.head)), state: "retired" });
    const anew = await triple({ ...request, scope: [] });
    expect(anew.uid).not.toBe(who.uid);
    expect(await stored(space, keysOf(anew).head)).toMatchObject({ lifecycleUid: anew.uid, state: "active" });
    expect((await stored(space, keys.gate)).lifecycleUid).toBe(who.uid);
  });
});

describe("many grants at once, on two replicas", () => {
  it("of one content make one incarnation", async () => {
    const request = args();
    const all = await Promise.all(Array.from({ length: 8 }, () => grant(request)));
    expect(new Set(all.map(({ lifecycleUid }) => lifecycleUid)).size).toBe(1);
  });

  it("of different contents make the first one's, and refuse the others", async () => {
    const request = args(undefined, { actor: "raced" });
    const all = await Promise.allSettled(
      Array.from({ length: 6 }, (_, at) => grant({ ...request, label: `content ${at}` })),
    );
    const granted = all.flatMap((one) => (one.status === "fulfilled" ? [one.value.lifecycleUid] : []));
    const codes = all.flatMap((one) => (one.status === "rejected" ? [one.reason.code] : []));
    expect(granted).toHaveLength(1);
    expect(codes).toEqual(Array(5).fill("failed-precondition"));
    expect(await durables(space, "raced")).toHaveLength(2);
    expect(Uid.is(granted[0])).toBe(true);
  });
});
