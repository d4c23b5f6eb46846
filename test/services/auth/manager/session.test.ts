import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { credentialIdOf } from "../../../../shared/canonical.ts";
import { managerSession } from "../../../../shared/contracts/auth/manager/session.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newNonce, newUid, systemPorts } from "../../../../shared/ports.ts";
import { gateRows } from "../../../../shared/rows/gate.ts";
import { headRows } from "../../../../shared/rows/head.ts";
import { sessionRows } from "../../../../shared/rows/session.ts";
import { SessionId } from "../../../../shared/tokens.ts";
import type { TestManager } from "../../../kit/manager.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import type { Person } from "../../../kit/person.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { hears } from "../hear.ts";
import { expectRow, itIssues, rowOf } from "../issuing.ts";
import { during, frozen, gateKeyOf, MANAGER } from "../scene.ts";
import {
  holderRow,
  openArgs,
  openSession,
  reissueArgs,
  type SessionArgs,
  secondsAhead,
  sessionRow,
  statesOf,
} from "./sessions.ts";

let space: TestSpace;
let manager: TestManager;
let bob: Person;

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange", "callout"] });
  manager = await space.manager(await space.person("alice", { scope: ["supervise"] }));
  bob = await space.person("bob");
});
afterAll(() => space.stop());

const refused = (code: ErrorCode, args: SessionArgs) =>
  unchanged(space, code, () => manager.client.call(managerSession, args, { once: true }));
const sessionWith = (args: SessionArgs, change: Partial<SessionArgs["session"]>): SessionArgs => ({
  ...args,
  session: { ...args.session, ...change },
});

itIssues({
  operation: managerSession,
  proof: "U",
  scene: () => ({ space, manager, person: manager.person }),
  args: (of) => openArgs(of, bob),
});

describe("opening a session", () => {
  it("makes the session and both its halves in one commit", async () => {
    const args = openArgs(manager, bob);
    const { sessionId, epoch, exp, grantSig, id } = args.session;
    const before = await space.store.lastSeq("auth");
    const answer = await manager.client.call(managerSession, args);
    expect(await space.store.lastSeq("auth")).toBe((before ?? 0) + 3);
    const { sessionServing } = answer.credentials;
    expect(answer.expiresAt).toBe(exp * 1_000);
    expect(sessionServing.exp).toBe(exp);
    await expectRow(space, manager, "sessionServing", sessionServing, {
      credentialKey: id,
      sourceChain: [`session.${sessionId}`],
    });
    const principal = `${bob.owner}.${bob.actor}`;
    expect((await sessionRow(space, sessionId))?.value).toEqual({
      sessionId,
      endpoint: "manager",
      serving: { instanceId: manager.instanceId, epoch },
      holder: { principal, lifecycleUid: bob.uid },
      holderCredentialId: `h-${sessionId}`,
      servingCredentialId: credentialIdOf(sessionServing.jwt),
      grantSig,
      state: "active",
      exp: exp * 1_000,
    });
    expect((await holderRow(space, bob, sessionId))?.value).toEqual({
      credentialId: `h-${sessionId}`,
      role: "sessionHolder",
      holderPrincipal: principal,
      lifecycleUid: bob.uid,
      sourceChain: [`session.${sessionId}`],
      generation: 1,
      state: "active",
      exp: exp * 1_000,
    });
  });

  it("lets both sides talk, and nobody else on that session", async () => {
    const { sessionId, grantSig, key, serving } = await openSession(manager, bob);
    const epoch = manager.coordinates.processEpoch;
    const served = await manager.connectAs(serving.jwt, key);
    const held = await bob.connect({
      view: "session-caller",
      sessionGrant: { endpoint: MANAGER, sessionId, epoch, grantSig },
    });
    const at = `cotal.demo.eps.manager.${sessionId}.${epoch}`;
    await hears(served, held.connection, `${at}.in`);
    await hears(held.connection, served, `${at}.out`);
    await expect(
      hears(space.roots.space, served, `cotal.demo.eps.manager.${sessionId}.${epoch + 1}.out`),
    ).rejects.toThrow();
  });

  it("is of one use", async () => {
    const args = openArgs(manager, bob);
    await manager.client.call(managerSession, args);
    await refused("conflict", args);
    await refused("conflict", sessionWith(openArgs(manager, bob), { sessionId: args.session.sessionId }));
  });

  it("happens at the epoch under which the instance serves", async () => {
    const { epoch } = openArgs(manager, bob).session;
    const { details } = await refused("conflict", sessionWith(openArgs(manager, bob), { epoch: epoch + 1 }));
    expect(details).toEqual([{ kind: "ai.cotal.auth.incarnation", instanceId: manager.instanceId, epoch }]);
  });

  it("ends in the future, within a day, after five seconds at least", async () => {
    await refused("expired", openArgs(manager, bob, secondsAhead(-1)));
    await refused("expired", openArgs(manager, bob, secondsAhead(3)));
    await refused("bad-request", openArgs(manager, bob, secondsAhead(25 * 3_600)));
    await manager.client.call(managerSession, openArgs(manager, bob, secondsAhead(24 * 3_600 - 2)));
  });

  it("wants holder and signature together", async () => {
    const { holder, grantSig, ...common } = openArgs(manager, bob).session;
    for (const half of [{ holder }, { grantSig }]) {
      await refused("bad-request", { ...openArgs(manager, bob), session: { ...common, ...half } } as SessionArgs);
    }
  });

  describe("refuses a holder", () => {
    it("that is granted at another uid or not at all", async () => {
      const args = openArgs(manager, bob);
      for (const change of [{ lifecycleUid: newUid(systemPorts) }, { actor: "nobody" as Person["actor"] }]) {
        const holder = { ...args.session.holder, ...change };
        await refused("expired", { ...args, session: { ...args.session, holder } });
      }
    });

    it("that is being retired", async () => {
      const carol = await space.person("carol");
      const { owner, actor, uid } = carol;
      const [head, gate] = await Promise.all([
        space.store.read(headRows.key({ owner, actor })),
        space.store.read(gateRows.key({ uid })),
      ]);
      if (!head || !gate) throw new Error("carol does not live");
      const op = { opId: newUid(systemPorts), kind: "retirement" as const };
      await space.put(head.key, { ...head.value, state: "retiring", op });
      await refused("expired", openArgs(manager, carol));
      await space.put(head.key, head.value);
      await space.put(gate.key, { ...gate.value, state: "frozen", op });
      await refused("expired", openArgs(manager, carol));
    });

    it("whose gate is frozen while signing", async () => {
      const dave = await space.person("dave");
      const gate = await space.store.read(gateRows.key({ uid: dave.uid }));
      if (!gate) throw new Error("dave does not live");
      const pause = pauseCommit(`epcred.manager.${manager.instanceId}.`);
      const answer = manager.client.call(managerSession, openArgs(manager, dave), { once: true });
      answer.catch(() => {});
      await pause.reached;
      await space.put(gate.key, {
        ...gate.value,
        state: "frozen",
        op: { opId: newUid(systemPorts), kind: "retirement" },
      });
      await unchanged(space, "conflict", () => {
        pause.resume();
        return answer;
      });
    });
  });
});

describe("issuing the serving half again", () => {
  it("swaps the session to a new half and revokes the former one, in one commit", async () => {
    const opened = await openSession(manager, bob);
    const key = createKeyPair("user");
    const before = await space.store.lastSeq("auth");
    const answer = await manager.person.ask(managerSession, reissueArgs(manager, opened.sessionId, opened.exp, key));
    expect(await space.store.lastSeq("auth")).toBe((before ?? 0) + 3);
    const serving = answer.credentials.sessionServing;
    expect((await sessionRow(space, opened.sessionId))?.value.servingCredentialId).toBe(credentialIdOf(serving.jwt));
    expect((await rowOf(space, manager, opened.serving.jwt))?.value.state).toBe("revoked");
    expect(await statesOf(space, manager, bob, { ...opened, serving })).toEqual(["active", "active", "active"]);
    const served = await manager.connectAs(serving.jwt, key);
    const at = `cotal.demo.eps.manager.${opened.sessionId}.${manager.coordinates.processEpoch}`;
    await hears(served, space.roots.space, `${at}.in`);
  });

  it("happens again as often as it is asked for", async () => {
    const opened = await openSession(manager, bob);
    for (const _ of [1, 2]) {
      await manager.client.call(managerSession, reissueArgs(manager, opened.sessionId, opened.exp));
    }
    const rows = await sessionRow(space, opened.sessionId);
    expect(rows?.value.state).toBe("active");
  });

  it("wants a session", () =>
    refused("not-found", reissueArgs(manager, SessionId.parse(newNonce(systemPorts)), secondsAhead(60))));

  it("refuses one of another end, another instance, another epoch, or that has ended or passed", async () => {
    const { sessionId, exp } = await openSession(manager, bob);
    const { key, value } = await sessionRow(space, sessionId).then((row) => row ?? Promise.reject(new Error("none")));
    await refused("failed-precondition", reissueArgs(manager, sessionId, exp + 1));
    for (const wrong of [
      { ...value, serving: { ...value.serving, instanceId: newUid(systemPorts) } },
      { ...value, serving: { ...value.serving, epoch: value.serving.epoch + 1 } },
      { ...value, state: "closed" as const },
    ]) {
      await space.put(key, wrong);
      await refused("failed-precondition", reissueArgs(manager, sessionId, exp));
    }
    await space.put(sessionRows.key({ sessionId }), { ...value, exp: systemPorts.now() - 1 });
    await refused("failed-precondition", reissueArgs(manager, sessionId, exp));
  });

  it("loses against whoever issued it meanwhile", async () => {
    const { sessionId, exp } = await openSession(manager, bob);
    const pause = pauseCommit(`epcred.manager.${manager.instanceId}.`);
    const slow = manager.client.call(managerSession, reissueArgs(manager, sessionId, exp), { once: true });
    slow.catch(() => {});
    await pause.reached;
    const row = await sessionRow(space, sessionId);
    if (!row) throw new Error("no session");
    await space.put(row.key, row.value);
    await unchanged(space, "conflict", () => {
      pause.resume();
      return slow;
    });
  });

  it("is refused on a frozen gate, whatever the proof", async () => {
    const { sessionId, exp } = await openSession(manager, bob);
    await during(space, gateKeyOf(manager), frozen(), () =>
      refused("failed-precondition", reissueArgs(manager, sessionId, exp)),
    );
  });
});
