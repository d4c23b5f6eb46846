import { afterAll, beforeAll, expect, it } from "vitest";
import { runOperator } from "../../../../shared/contracts/auth/runs/run-operator.ts";
import { newNonce, newUid, systemPorts } from "../../../../shared/ports.ts";
import { actorRows } from "../../../../shared/rows/actor.ts";
import { epGateRows } from "../../../../shared/rows/gate.ts";
import { serviceSpecRows } from "../../../../shared/rows/service.ts";
import { touch } from "../../../../shared/store/message.ts";
import { buildSubject } from "../../../../shared/subjects.ts";
import { Actor, Command, Generation, Hex64, type Triple } from "../../../../shared/tokens.ts";
import { ownWork } from "../../../../shared/work.ts";
import { freshRunId } from "../../../kit/manager.ts";
import { ManagerContract } from "../../../kit/manager-contract.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { type Answering, type Answers, operatorArgs, startAnswering } from "../runs/answering.ts";
import { admittedRun, stepEntry, writeCheckpoint, writeJournal } from "../runs/runs.ts";
import { during, gateKeyOf, MANAGER, stored } from "../scene.ts";

let scene: Answering;

beforeAll(async () => {
  scene = await startAnswering();
});
afterAll(() => scene.space.stop());

it("comes with every answer, and is asked for after the step (run-operator 3, 4)", async () => {
  const { refused, askingRun } = scene;
  const { answers } = await askingRun();
  await refused("permission-denied", { answers });
  await refused("failed-precondition", { answers: { ...answers, stepKey: "main/checkpoint:other#1" } });
});

it("is a request of its command, to this instance, in this space (V1)", async () => {
  const { space, alice, caller, refused, ask, served, askingRun } = scene;
  const { answers } = await askingRun();
  const resume = await caller.request("run-resume", { runId: answers.runId });
  const elsewhere = await (await alice.callerOf(await space.manager(alice))).request("run-answer", answers);
  const good = await served(answers);
  for (const subject of [
    resume,
    elsewhere,
    good.replace("cotal.demo.", "cotal.other."),
    good.replace(".manager.", ".delivery."),
    good.replace(".inst.", ".all."),
    "not a subject",
  ]) {
    await refused("permission-denied", { answers, served: subject });
  }
  await ask({ answers, served: good });
});

it("was observed, and serves once (V2)", async () => {
  const { caller, refused, ask, served, askingRun } = scene;
  const { answers } = await askingRun();
  await refused("permission-denied", { answers, served: caller.subject("run-answer") });
  const subject = await served(answers);
  await ask({ answers, served: subject });
  await refused("permission-denied", { answers, served: subject });
});

it("is spent by a later check that fails", async () => {
  const { refused, served, askingRun } = scene;
  const [one, other] = [await askingRun(), await askingRun()];
  const subject = await served(one.answers);
  await refused("permission-denied", { answers: other.answers, served: subject });
  await refused("permission-denied", { answers: one.answers, served: subject });
});

it("asks for this step of this run on this endpoint, as an answer or an amendment (V3)", async () => {
  const { refused, ask, served, askingRun } = scene;
  const { answers } = await askingRun();
  for (const change of [
    { runId: freshRunId() },
    { stepKey: "main/checkpoint:deploy#2" },
    { endpoint: "other" },
    { amend: true },
  ]) {
    await refused("permission-denied", { answers, served: await served(answers, change) });
  }
  await ask({ answers, served: await served(answers, { endpoint: "manager", amend: false }) });
});

it("was bound, if it was, to this instance at this epoch (V4)", async () => {
  const { manager, caller, refused, ask, askingRun } = scene;
  const { answers } = await askingRun();
  const { instanceId, coordinates } = manager;
  const { processEpoch: epoch } = coordinates;
  const bound = (bind: object) => caller.request("run-answer", answers, { envelope: { bind } });
  await refused("permission-denied", { answers, served: await bound({ instanceId, epoch: epoch + 1 }) });
  await refused("permission-denied", { answers, served: await bound({ instanceId: newUid(systemPorts), epoch }) });
  await ask({ answers, served: await bound({ instanceId, epoch }) });
});

it("was made for the registered contract (V5)", async () => {
  const { manager, caller, refused, askingRun } = scene;
  const { answers } = await askingRun();
  const { inputDigest, outputDigest } = manager.contract.pair("run-answer");
  const op = { endpoint: "manager", command: "run-answer", inputDigest, outputDigest };
  for (const envelope of [
    { op: { ...op, inputDigest: manager.contract.pair("status").inputDigest } },
    { op: { ...op, outputDigest: inputDigest } },
    { class: "journal" },
  ]) {
    await refused("permission-denied", { answers, served: await caller.request("run-answer", answers, { envelope }) });
  }
});

it("finds that contract as it was registered (V5)", async () => {
  const { space, alice } = scene;
  const manager = await space.manager(alice);
  const caller = await alice.callerOf(manager);
  const { answers } = await askingOf(manager);
  const key = serviceSpecRows.key({ endpoint: MANAGER, instanceId: manager.instanceId });
  const refused = async () => {
    const served = await caller.request("run-answer", answers);
    const request = operatorArgs(manager, { answers, served });
    await unchanged(space, "failed-precondition", () => manager.client.call(runOperator, request, { once: true }));
  };
  const registered = await stored(space, key);
  await space.put(key, registered); // written again, though the same
  await refused();
  await space.put(key, { ...registered, clusterDigests: [new ManagerContract(9).registered.clusterDigest] });
  await refused();
});

/** A waiting step of that manager's. */
async function askingOf(manager: Answering["manager"]): Promise<{ answers: Answers }> {
  const { space } = scene;
  const runId = await admittedRun(space, manager);
  await writeJournal(space, runId, [stepEntry({ requestId: runId })]);
  await writeCheckpoint(space, runId, "waiting");
  return { answers: { runId, stepKey: "main/checkpoint:deploy#1" } };
}

it("is the run owner's, whom no scope overrides (V6)", async () => {
  const { space, manager, refused, askingRun } = scene;
  const { answers } = await askingRun();
  const bob = await space.person("bob", { scope: ["supervise", "admin", "run", "spawn"] });
  await refused("permission-denied", { answers, served: await observedOf(bob, manager, answers) });
  const { label: _, ...person } = await stored(space, actorRows.key(bob));
  const agent = {
    ...person,
    actor: Actor.parse("agent"),
    kind: "managed" as const,
    tokenHash: Hex64.parse("0".repeat(64)),
  };
  await space.put(actorRows.key(agent), agent);
  const answering = { owner: agent.owner, actor: agent.actor, uid: agent.lifecycleUid };
  await refused("permission-denied", { answers, served: await observedOf(answering, manager, answers) });
});

/** A request as if that caller had published it, on either rail. */
async function observedOf(
  caller: Triple,
  { instanceId, contract }: Answering["manager"],
  args: Answers,
  more: Partial<Parameters<typeof buildSubject>[0]> = {},
  over: object = {},
): Promise<string> {
  const { space } = scene;
  const subject = buildSubject({
    space: space.space,
    version: "legacy",
    rail: "inst",
    endpoint: MANAGER,
    ...(more.rail === "one" ? {} : { instanceId }),
    command: Command.parse("run-answer"),
    mode: "self",
    caller,
    nonce: newNonce(systemPorts),
    ...more,
  });
  const { inputDigest, outputDigest } = contract.pair("run-answer");
  const envelope = {
    v: 1,
    id: newNonce(systemPorts),
    op: { endpoint: "manager", command: "run-answer", inputDigest, outputDigest },
    class: "ephemeral",
    replyExpected: false,
    args,
    from: { id: `${caller.owner}.${caller.actor}`, name: "test" },
    ...over,
  };
  space.roots.space.publish(subject, JSON.stringify(envelope));
  await space.roots.space.flush();
  return subject;
}

it("stands on issued authority that lives and permits it (V7)", async () => {
  const { space, alice, manager, caller, refused, served, askingRun } = scene;
  const { answers } = await askingRun();
  const { owner, actor, uid } = alice;
  // Nothing was issued under another generation.
  await refused("permission-denied", {
    answers,
    served: await observedOf(alice, manager, answers, { version: "v1", generation: Generation.parse("0".repeat(32)) }),
  });
  // The ceiling names one instance, on the instance's rail.
  const { generation } = caller;
  const classRail = { version: "v1", rail: "one", generation } as const;
  const { details } = await refused("permission-denied", {
    answers,
    served: await observedOf(alice, manager, answers, classRail),
  });
  expect(details).toEqual([{ kind: "ai.cotal.ep.unbound-caller-authority", owner, actor, uid }]);
  // Its source has ended.
  const other = await space.person("alice", { actor: "other", scope: ["run"] });
  const gone = await other.callerOf(manager);
  const subject = await served(answers, {}, gone);
  const row = actorRows.key(other);
  await during(space, row, { state: "revoked", revokedAt: 1, revokedBy: (await stored(space, row)).grantedBy }, () =>
    refused("permission-denied", { answers, served: subject }),
  );
});

it("is an agent's answer on the older rail, and nobody else's (V8, V9)", async () => {
  const { space, alice, manager, refused, ask, askingRun } = scene;
  const { answers } = await askingRun();
  const { owner, uid } = alice;
  const agent = { owner, actor: Actor.parse("agent"), uid: newUid(systemPorts) };
  const { label: _, ...person } = await stored(space, actorRows.key(alice));
  const managed = {
    ...person,
    actor: agent.actor,
    lifecycleUid: agent.uid,
    kind: "managed" as const,
    tokenHash: Hex64.parse("0".repeat(64)),
  };
  const bare = await refused("permission-denied", { answers, served: await observedOf(alice, manager, answers) });
  expect(bare.details).toEqual([{ kind: "ai.cotal.ep.unbound-caller-authority", owner, actor: alice.actor, uid }]);
  await refused("permission-denied", { answers, served: await observedOf(agent, manager, answers) });
  await space.put(actorRows.key(agent), managed);
  const anew = { ...agent, uid: newUid(systemPorts) };
  await refused("permission-denied", { answers, served: await observedOf(anew, manager, answers) });
  // Not where it is aimed at somebody, at another instance, or bound to one (V1, V4).
  const elsewhere = newUid(systemPorts);
  const { processEpoch: epoch } = manager.coordinates;
  for (const [parts, envelope] of [
    [{ mode: "exact", target: agent }, {}],
    [{ instanceId: elsewhere }, {}],
    [{ rail: "one" }, { bind: { instanceId: elsewhere, epoch } }],
  ] as const) {
    await refused("permission-denied", { answers, served: await observedOf(agent, manager, answers, parts, envelope) });
  }
  await ask({ answers, served: await observedOf(agent, manager, answers) });
  await ask({ answers, served: await observedOf(agent, manager, answers, { rail: "one" }) });
  await space.put(actorRows.key(agent), { ...managed, state: "revoked", revokedAt: 1, revokedBy: person.grantedBy });
  await refused("permission-denied", { answers, served: await observedOf(agent, manager, answers) });
});

it("is taken once although the gate is touched and everything checked again", async () => {
  const { space, manager, ask, served, askingRun } = scene;
  const { answers } = await askingRun();
  const pause = pauseCommit(`epcred.manager.${manager.instanceId}.`);
  const answer = ask({ answers, served: await served(answers) });
  await pause.reached;
  const gate = await space.store.read(epGateRows.key({ endpoint: MANAGER, instanceId: manager.instanceId }));
  if (!gate) throw new Error("no gate");
  await space.store.commit([touch(gate)], ownWork(systemPorts, 5_000));
  pause.resume();
  expect((await answer).credentials.operator.jwt).toBeTruthy();
});

it("is judged anew then: an authority that ended meanwhile answers nothing", async () => {
  const { space, manager, args, served, askingRun } = scene;
  const { answers } = await askingRun();
  const third = await space.person("alice", { actor: "third", scope: ["run"] });
  const subject = await served(answers, {}, await third.callerOf(manager));
  const pause = pauseCommit(`epcred.manager.${manager.instanceId}.`);
  const answer = manager.client.call(runOperator, args({ answers, served: subject }), { once: true });
  answer.catch(() => {});
  await pause.reached;
  const row = actorRows.key(third);
  const before = await stored(space, row);
  await space.put(row, { ...before, state: "revoked", revokedAt: 1, revokedBy: before.grantedBy });
  await space.put(gateKeyOf(manager), await stored(space, gateKeyOf(manager)));
  await unchanged(space, "permission-denied", () => {
    pause.resume();
    return answer;
  });
});
