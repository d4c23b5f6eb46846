import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AuthorityClient } from "../../../../shared/client.ts";
import { managerRetire } from "../../../../shared/contracts/auth/manager/retire.ts";
import { retireLifecycle } from "../../../../shared/contracts/auth/retirement/retire-lifecycle.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import { interactiveRetireOpId, retireOpId } from "../../../../shared/credentials/roles.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { gateRows } from "../../../../shared/rows/gate.ts";
import { Actor, type Triple, type UserNkey } from "../../../../shared/tokens.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { connectOnce } from "../connections.ts";
import { type Lifecycle, lifecycle, rowsOf } from "../lifecycles.ts";
import { during, gateKeyOf, MANAGER, provisioned, retired, type Scene, startScene } from "../scene.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await startScene({ services: ["custodian", "auth", "exchange"], authTimeoutS: 1 });
});
afterAll(() => scene.space.stop());

/** The serve principal of the scene's manager. */
const server = (): Triple => {
  const { person, manager } = scene;
  return { owner: person.owner, actor: Actor.parse(`manager_serve_${manager.instanceId}`), uid: manager.uid };
};

const argsFor = (opId: Lifecycle["opId"]): Input<typeof retireLifecycle> => ({
  opId,
  serveEndpoint: MANAGER,
  serveInstanceId: scene.manager.instanceId,
  serveEpoch: scene.manager.coordinates.processEpoch,
});

const agent = (shape: Parameters<typeof lifecycle>[1] = {}) =>
  lifecycle(scene.space, { owner: scene.person.owner, ...shape });

const retire = (target: Triple, args: Input<typeof retireLifecycle>, as = server()) =>
  scene.space.clientAs(as).call(retireLifecycle, args, { target, once: true });

it("retires the agent that the manager's own requester credential names, and no other", async () => {
  const { space, person, manager } = scene;
  const target = await agent();
  const other = await agent();
  const key = createKeyPair("user");
  const { credentials } = await person.ask(managerRetire, {
    ...manager.envelope(),
    kind: "manager-service-authority",
    operation: "retire",
    registrationProof: manager.declaration(),
    retirement: {
      id: key.public as UserNkey,
      target: { owner: target.owner, actor: target.actor, lifecycleUid: target.uid },
      opId: target.opId,
      serveEpoch: manager.coordinates.processEpoch,
    },
  });
  const connection = await connectOnce(space, credentials.retirementRequester.jwt, key);
  const client = new AuthorityClient({
    connection,
    space: space.space,
    caller: server(),
    inboxPrefix: `_INBOX_${key.public}`,
    name: "manager",
    ports: systemPorts,
  });
  await expect(
    client.call(retireLifecycle, argsFor(other.opId), { target: other, once: true, deadlineMs: 500 }),
  ).rejects.toMatchObject({ code: "unavailable" }); // the broker lets nothing of it through
  expect((await rowsOf(space, other)).gate?.state).toBe("open");
  const answer = await client.call(retireLifecycle, argsFor(target.opId), { target });
  expect(answer).toEqual({
    retired: true,
    lifecycleUid: target.uid,
    opId: target.opId,
    evictedPrincipals: [`${target.owner}.${target.actor}`],
  });
  expect(await rowsOf(space, target)).toMatchObject({
    head: { state: "retired" },
    gate: { state: "retired" },
    stage: { phase: "finished" },
  });
  expect(await client.call(retireLifecycle, argsFor(target.opId), { target })).toEqual(answer);
  await connection.close();
});

it("revokes the row of an agent that was not prepared", async () => {
  const target = await agent({ state: "active" });
  await retire(target, argsFor(target.opId));
  expect((await rowsOf(scene.space, target)).actor).toMatchObject({
    state: "revoked",
    revokedBy: `${server().owner}.${server().actor}`,
  });
});

describe("is refused, with nothing written,", () => {
  const refused = (code: ErrorCode, target: Triple, change: object = {}, as?: Triple) =>
    unchanged(scene.space, code, () => retire(target, { ...argsFor(retireOpId(target.uid)), ...change }, as));

  it("for an operation id that is not that of the target (check 1)", async () => {
    const target = await agent();
    await refused("permission-denied", target, { opId: newUid(systemPorts) });
    await refused("permission-denied", target, { opId: interactiveRetireOpId(target.uid) });
  });

  it("for a person's lifecycle", async () => {
    const target = await agent({ kind: "interactive" });
    await refused("permission-denied", target);
    await refused("permission-denied", target, { opId: interactiveRetireOpId(target.uid) });
  });

  it("through a gate that is absent or retired (check 2)", async () => {
    const { space, manager } = scene;
    const target = await agent();
    await refused("failed-precondition", target, { serveInstanceId: newUid(systemPorts) });
    await during(space, gateKeyOf(manager), retired(), () => refused("failed-precondition", target));
  });

  it("through another manager's gate (check 3)", async () => {
    const { space, person } = scene;
    const target = await agent();
    const other = await space.manager(person, { upTo: "prepare" });
    await refused("permission-denied", target, { serveInstanceId: other.instanceId, serveEpoch: 0 });
  });

  it("under another epoch, which is named (check 4)", async () => {
    const { manager } = scene;
    const target = await agent();
    const error = await refused("conflict", target, { serveEpoch: manager.coordinates.processEpoch + 1 });
    expect(error.details).toEqual([
      {
        kind: "ai.cotal.auth.incarnation",
        instanceId: manager.instanceId,
        epoch: manager.coordinates.processEpoch,
      },
    ]);
  });

  it("for another owner's agent (check 5)", async () => {
    await refused("permission-denied", await lifecycle(scene.space));
  });

  it("for a principal that never lived (check 6)", async () => {
    await refused("not-found", { ...(await agent()), actor: Actor.parse("nobody") });
  });

  it("for a superseded uid; the current one is named (check 7)", async () => {
    const target = await agent();
    const error = await refused("expired", { ...target, uid: newUid(systemPorts) });
    expect(error.details).toEqual([{ kind: "ai.cotal.auth.current-lifecycle", lifecycleUid: target.uid }]);
  });

  it("while another operation holds the gate, which is named (check 8)", async () => {
    const opId = newUid(systemPorts);
    const target = await agent({ gate: { state: "frozen", op: { opId, kind: "retirement" } } });
    const error = await refused("conflict", target);
    expect(error.details).toEqual([{ kind: "ai.cotal.auth.op-held", opId, opKind: "retirement" }]);
    await scene.space.put(gateRows.key(target), {
      lifecycleUid: target.uid,
      state: "frozen",
      generation: 1,
      op: { opId, kind: "takeover" },
    });
    await refused("failed-precondition", target);
  });

  it("to anybody who serves nothing", async () => {
    const target = await agent();
    for (const caller of [
      scene.person,
      { ...server(), actor: Actor.parse(`manager_${scene.manager.instanceId}`) },
      await provisioned(scene.space, "operator"),
    ]) {
      await refused("permission-denied", target, {}, caller);
    }
  });
});
