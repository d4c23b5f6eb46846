import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { managerSession } from "../../../../shared/contracts/auth/manager/session.ts";
import { managerSessionEnd } from "../../../../shared/contracts/auth/manager/session-end.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import { newNonce, systemPorts } from "../../../../shared/ports.ts";
import { sessionRows } from "../../../../shared/rows/session.ts";
import { RequestId, SessionId } from "../../../../shared/tokens.ts";
import type { TestManager } from "../../../kit/manager.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import type { Connected, Person } from "../../../kit/person.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { hears } from "../hear.ts";
import { rowOf } from "../issuing.ts";
import { MANAGER } from "../scene.ts";
import { type Opened, openSession, reissueArgs, sessionRow, statesOf } from "./sessions.ts";

let space: TestSpace;
let manager: TestManager;
let bob: Person;

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange", "callout"] });
  manager = await space.manager(await space.person("alice", { scope: ["supervise"] }));
  bob = await space.person("bob");
});
afterAll(() => space.stop());

const args = (sessionId: SessionId, actor = manager.person.actor): Input<typeof managerSessionEnd> => ({
  v: 1,
  requestId: RequestId.parse(newNonce(systemPorts)),
  actor,
  sessionId,
  reason: "closed",
});

/** The holder's own connection, as its grant lets it in. */
const hold = (holder: Person, { sessionId, grantSig }: Opened): Promise<Connected> =>
  holder.connect({
    view: "session-caller",
    sessionGrant: { endpoint: MANAGER, sessionId, epoch: manager.coordinates.processEpoch, grantSig },
  });

describe("who may end a session", () => {
  it("is its manager", async () => {
    const opened = await openSession(manager, bob);
    const request = args(opened.sessionId);
    const before = await space.store.lastSeq("auth");
    const { requestId, sessionId } = request;
    expect(await manager.client.call(managerSessionEnd, request)).toEqual({
      v: 1,
      requestId,
      sessionId,
      state: "closed",
    });
    expect(await space.store.lastSeq("auth")).toBe((before ?? 0) + 3);
    expect(await statesOf(space, manager, bob, opened)).toEqual(["closed", "revoked", "revoked"]);
  });

  it("is its holder, on the session's own connection", async () => {
    const opened = await openSession(manager, bob);
    const { client } = await hold(bob, opened);
    expect(await client.call(managerSessionEnd, args(opened.sessionId, bob.actor))).toMatchObject({ state: "closed" });
    expect(await statesOf(space, manager, bob, opened)).toEqual(["closed", "revoked", "revoked"]);
  });

  it("is no other manager, not of the same owner either", async () => {
    const { sessionId } = await openSession(manager, bob);
    const sibling = await space.manager(manager.person, { upTo: "prepare" });
    await unchanged(space, "permission-denied", () =>
      sibling.client.call(managerSessionEnd, args(sessionId), { once: true }),
    );
  });

  it("is no other person, and not its holder under another uid or actor", async () => {
    const { sessionId } = await openSession(manager, bob);
    const [carol, other] = [await space.person("carol"), await space.person("bob", { actor: "other" })];
    for (const person of [carol, other]) {
      const client = space.clientAs(person);
      await unchanged(space, "permission-denied", () =>
        client.call(managerSessionEnd, args(sessionId, person.actor), { once: true }),
      );
    }
    await unchanged(space, "expired", () =>
      space.clientAs({ ...bob, uid: carol.uid }).call(managerSessionEnd, args(sessionId, bob.actor), { once: true }),
    );
    await unchanged(space, "permission-denied", () =>
      space.clientAs(bob).call(managerSessionEnd, args(sessionId, other.actor), { once: true }),
    );
  });

  it("is nobody through the gateway", async () => {
    const { sessionId } = await openSession(manager, bob);
    // It has no row for this command, so the request is lost on the way.
    await expect(bob.ask(managerSessionEnd, args(sessionId, bob.actor), { deadlineMs: 300 })).rejects.toMatchObject({
      code: "unavailable",
    });
    expect((await sessionRow(space, sessionId))?.value.state).toBe("active");
  });
});

describe("a session that ends", () => {
  it("must exist", () =>
    unchanged(space, "not-found", () =>
      manager.client.call(managerSessionEnd, args(SessionId.parse(newNonce(systemPorts))), { once: true }),
    ));

  it("stays as it ended, whoever asks again", async () => {
    const opened = await openSession(manager, bob);
    await manager.client.call(managerSessionEnd, args(opened.sessionId));
    const after = await space.store.lastSeq("auth");
    for (const client of [manager.client, space.clientAs(bob)]) {
      const actor = client === manager.client ? manager.person.actor : bob.actor;
      expect(await client.call(managerSessionEnd, args(opened.sessionId, actor))).toMatchObject({ state: "closed" });
    }
    const row = await sessionRow(space, opened.sessionId);
    if (!row) throw new Error("no session");
    expect(await space.store.lastSeq("auth")).toBe(after);
    await space.put(row.key, { ...row.value, state: "superseded" });
    expect(await manager.client.call(managerSessionEnd, args(opened.sessionId))).toMatchObject({ state: "superseded" });
  });

  it("leaves both connections, and lets nobody in any more", async () => {
    const opened = await openSession(manager, bob);
    const [held, served] = [await hold(bob, opened), await manager.connectAs(opened.serving.jwt, opened.key)];
    await manager.client.call(managerSessionEnd, args(opened.sessionId));
    const at = `cotal.demo.eps.manager.${opened.sessionId}.${manager.coordinates.processEpoch}`;
    await hears(served, held.connection, `${at}.in`);
    await expect(hold(bob, opened)).rejects.toMatchObject({ code: "permission-denied" });
    await unchanged(space, "failed-precondition", () =>
      manager.client.call(managerSession, reissueArgs(manager, opened.sessionId, opened.exp), { once: true }),
    );
  });

  it("ends although its serving half is issued again meanwhile", async () => {
    const opened = await openSession(manager, bob);
    const pause = pauseCommit(sessionRows.key({ sessionId: opened.sessionId }).key);
    const ending = manager.client.call(managerSessionEnd, args(opened.sessionId), { once: true });
    await pause.reached;
    const again = reissueArgs(manager, opened.sessionId, opened.exp);
    const serving = (await manager.client.call(managerSession, again)).credentials.sessionServing;
    pause.resume();
    expect(await ending).toMatchObject({ state: "closed" });
    expect(await statesOf(space, manager, bob, { ...opened, serving })).toEqual(["closed", "revoked", "revoked"]);
    expect((await rowOf(space, manager, opened.serving.jwt))?.value.state).toBe("revoked");
  });
});
