import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { instanceRetire } from "../../../../shared/contracts/auth/assignments/instance-retire.ts";
import { runOperator } from "../../../../shared/contracts/auth/runs/run-operator.ts";
import type { Output } from "../../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import { isAuthorityError } from "../../../../shared/errors.ts";
import { newNonce, newUid, systemPorts } from "../../../../shared/ports.ts";
import { epCredRows } from "../../../../shared/rows/credential.ts";
import { RequestId } from "../../../../shared/tokens.ts";
import { freshRunId, freshTakeoverId } from "../../../kit/manager.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import { assignedManager, PLATFORM, through } from "../assignments/assigned.ts";
import { asks, writes } from "../hear.ts";
import { expectRow, itIssues, rowOf } from "../issuing.ts";
import { MANAGER } from "../scene.ts";
import { type Answering, operatorArgs, STEP, startAnswering } from "./answering.ts";
import { admittedRun, markRevoked, writeCheckpoint } from "./runs.ts";

let scene: Answering;

beforeAll(async () => {
  scene = await startAnswering();
});
afterAll(() => scene.space.stop());

itIssues({
  operation: runOperator,
  proof: "K",
  scene: () => ({ space: scene.space, manager: scene.manager, person: scene.alice }),
  args: (of) => operatorArgs(of),
});

describe("the forms of a request", () => {
  it("list without a run, read one run, answer and amend a step of one", async () => {
    const { space, ask, served, askingRun } = scene;
    const { runId, token, answers, append } = await askingRun();
    const lines = space.hosts[0]?.lines ?? [];
    const from = lines.length;
    await ask();
    await ask({ runId });
    await ask({ answers, served: await served(answers) });
    await append(3, { state: "done" });
    await writeCheckpoint(space, token, "resumed", { settledAnswerId: "a" });
    const amending = { ...answers, amend: true as const };
    await ask({ answers: amending, served: await served(amending) });
    const seen = lines
      .slice(from)
      .map((line): { op?: string; msg?: string; form?: string; stepKey?: string } => JSON.parse(line))
      .filter(({ op, msg }) => op === "run-operator" && msg === "request")
      .map(({ form, stepKey }) => [form, stepKey]);
    expect(seen).toEqual([
      ["list", undefined],
      ["read", undefined],
      ["answer", STEP],
      ["amend", STEP],
    ]);
  });

  it("never name a run beside an answer, nor something served without one", async () => {
    const { caller, refused, askingRun } = scene;
    const { runId, answers } = await askingRun();
    const served = caller.subject("run-answer");
    await refused("bad-request", { answers, served, runId });
    await refused("bad-request", { runId, served });
    await refused("bad-request", { served });
    await refused("bad-request", { answers: { ...answers, amend: false }, served });
    await refused("bad-request", { answers: { ...answers, stepKey: "" }, served });
    await refused("bad-request", { answers: { ...answers, stepKey: "a".repeat(1_025) }, served });
  });
});

describe("the run", () => {
  it("must be admitted on this instance, to be read and to be answered", async () => {
    const { space, alice, caller, refused } = scene;
    const runId = freshRunId();
    await refused("permission-denied", { runId });
    await refused("permission-denied", { answers: { runId, stepKey: STEP }, served: caller.subject("run-answer") });
    await admittedRun(space, await space.manager(alice, { upTo: "none" }), runId);
    await refused("permission-denied", { runId });
  });

  it("must not be revoked", async () => {
    const { space, refused, served, askingRun } = scene;
    const { runId, answers } = await askingRun();
    await markRevoked(space, runId);
    await refused("permission-denied", { runId });
    await refused("permission-denied", { answers, served: await served(answers) });
  });

  it("may be revoked until the release: then nothing leaves, and the row is revoked", async () => {
    const { space, manager, args } = scene;
    const runId = await admittedRun(space, manager);
    const request = args({ runId });
    const pause = pauseCommit(`epcred.manager.${manager.instanceId}.`, "after");
    const answer = manager.client.call(runOperator, request, { once: true });
    answer.catch(() => {});
    await pause.reached;
    await markRevoked(space, runId);
    pause.resume();
    const refusal = await answer.catch((error: unknown) => error);
    expect(isAuthorityError(refusal) && [refusal.code, refusal.outcome]).toEqual(["permission-denied", "unknown"]);
    const { entries } = await space.store.scan(epCredRows, { endpoint: MANAGER, instanceId: manager.instanceId });
    const row = entries.find(({ value }) => value.credentialKey === request.operator.id);
    expect(row?.value.state).toBe("revoked");
  });
});

describe("what is issued", () => {
  it("is for 60 s, to the granting actor itself, and echoes the request", async () => {
    const { space, alice, manager, args } = scene;
    const request = args({ runId: await admittedRun(space, manager) });
    const answer = await manager.client.call(runOperator, request);
    const { credentials, owner, ...echo } = answer;
    expect({ owner, ...echo }).toEqual({ ...request, owner: alice.owner });
    const left = credentials.operator.exp - systemPorts.now() / 1_000;
    expect(left).toBeGreaterThan(55);
    expect(left).toBeLessThanOrEqual(60);
    const credentialKey = request.operator.id;
    await expectRow(space, manager, "runOperator", credentials.operator, { credentialKey, lifecycleUid: alice.uid });
  });

  it("is under an assignment the manager's, whose uid it bears", async () => {
    const { space } = scene;
    const door = { space, host: await space.client("platform_host"), kind: "platform" as const, owner: PLATFORM };
    const manager = await assignedManager(door);
    const key = createKeyPair("user");
    const { credentials } = (await through(door, operatorArgs(manager, {}, key))) as Output<typeof runOperator>;
    expect((await rowOf(space, manager, credentials.operator.jwt))?.value).toMatchObject({
      holderPrincipal: `${PLATFORM}.cli`,
      lifecycleUid: manager.uid,
      grantedBy: { kind: "assignment", instanceId: manager.instanceId },
    });
    await manager.connectAs(credentials.operator.jwt, key);
  });

  it("lists and reads records, and one run's journal", async () => {
    const { space, manager, args } = scene;
    const [key, runId, takeoverId] = [createKeyPair("user"), await admittedRun(space, manager), freshTakeoverId()];
    const { operator } = (await manager.client.call(runOperator, args({ runId, takeoverId }, key))).credentials;
    const reading = await manager.connectAs(operator.jwt, key);
    const spec = `$KV.cotal_records_demo.svc.manager.${manager.instanceId}.spec`;
    await asks(reading, "STREAM.MSG.GET.KV_cotal_records_demo", { last_by_subj: spec });
    const replay = (run: string) => {
      const consumer = `wfj_${run}_${takeoverId}`;
      const filter = `cotal.demo.wfj.${run}`;
      const config = { name: consumer, filter_subject: filter, ack_policy: "explicit", mem_storage: true };
      return asks(reading, `CONSUMER.CREATE.WFJ_demo.${consumer}.${filter}`, { stream_name: "WFJ_demo", config });
    };
    await replay(runId);
    await expect(replay(freshRunId())).rejects.toThrow();
    const answer = `$KV.cotal_records_demo.answer.manager.${newUid(systemPorts)}.a`;
    await expect(writes(reading, answer, {})).rejects.toThrow();
  });

  it("answers that one checkpoint and no other", async () => {
    const { manager, args, served, askingRun } = scene;
    const { answers, token } = await askingRun();
    const key = createKeyPair("user");
    const request = args({ answers, served: await served(answers) }, key);
    const { operator } = (await manager.client.call(runOperator, request)).credentials;
    const answering = await manager.connectAs(operator.jwt, key);
    const subject = (of: string) => `$KV.cotal_records_demo.answer.manager.${of}.a`;
    await writes(answering, subject(token), {});
    await expect(writes(answering, subject(`${token}x`), {})).rejects.toThrow();
  });

  it("is issued anew at each repeat, an answer with another observation", async () => {
    const { space, manager, args, ask, served, refused, askingRun } = scene;
    const request = args();
    for (const _ of [1, 2]) {
      const { operator } = (await manager.client.call(runOperator, request)).credentials;
      expect((await rowOf(space, manager, operator.jwt))?.value.state).toBe("active");
    }
    const { answers } = await askingRun();
    const subject = await served(answers);
    await ask({ answers, served: subject });
    await refused("permission-denied", { answers, served: subject });
    await ask({ answers, served: await served(answers) });
  });
});

it("falls with its instance, and the person stays connected", async () => {
  const { space, alice } = scene;
  const manager = await space.manager(alice);
  const { connection } = await alice.connect();
  const key = createKeyPair("user");
  const { operator } = (await manager.client.call(runOperator, operatorArgs(manager, {}, key))).credentials;
  const reading = await manager.connectAs(operator.jwt, key);
  const dropped = new Set<NatsConnection>();
  const supervisor = await manager.connection("supervisor");
  const all = [connection, reading, supervisor];
  for (const one of all) void noteDrop(one, dropped);
  const { instanceId } = manager;
  const requestId = RequestId.parse(newNonce(systemPorts));
  const ended = await space.operator.call(instanceRetire, { requestId, endpoint: MANAGER, instanceId });
  expect((await rowOf(space, manager, operator.jwt))?.value.state).toBe("revoked");
  expect(ended.evictedPrincipals).not.toContain(`${alice.owner}.${alice.actor}`);
  await Promise.all(all.map((one) => one.flush()));
  expect([...dropped]).toEqual([supervisor]);
});

/** Its credential still stands, so it comes back; that it was dropped is what is seen. */
async function noteDrop(connection: NatsConnection, dropped: Set<NatsConnection>): Promise<void> {
  for await (const { type } of connection.status()) if (type === "disconnect") dropped.add(connection);
}
