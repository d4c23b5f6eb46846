import { afterAll, beforeAll, it } from "vitest";
import { holdToken } from "../../../../services/auth/runs/token-rule.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import type { RunId } from "../../../../shared/tokens.ts";
import { freshRunId } from "../../../kit/manager.ts";
import { type Answering, type Answers, STEP, startAnswering } from "./answering.ts";
import { admittedRun, appendRecord, heldBy, stepEntry, writeCheckpoint, writeJournal, writeStatus } from "./runs.ts";

let scene: Answering;

beforeAll(async () => {
  scene = await startAnswering();
});
afterAll(() => scene.space.stop());

/** Refused, and the observation still there: after the repair the same request is answered with it. */
async function refusedUnspent(answers: Answers, repair: () => Promise<unknown>): Promise<void> {
  const served = await scene.served(answers);
  await scene.refused("failed-precondition", { answers, served });
  await repair();
  await scene.ask({ answers, served });
}

it("has the step, or nobody answers", async () => {
  const { space, manager, refused, served, askingRun } = scene;
  const { runId, answers, append } = await askingRun();
  const other = { ...answers, stepKey: "main/checkpoint:other#1" };
  await refused("failed-precondition", { answers: other, served: await served(other) });
  const empty = { runId: await admittedRun(space, manager), stepKey: STEP };
  await refused("failed-precondition", { answers: empty, served: await served(empty) });
  await append(3, { kind: "effect" });
  const effect = { runId, stepKey: "main/effect:deploy#1" };
  await refused("failed-precondition", { answers: effect, served: await served(effect) });
});

it("reaches as far as the status says", async () => {
  const { space, manager, askingRun } = scene;
  const { runId, answers } = await askingRun();
  await writeStatus(space, heldBy(manager, runId), { journalHigh: 3 });
  await refusedUnspent(answers, () => writeStatus(space, heldBy(manager, runId), { journalHigh: 2 }));
});

it("is read to its end even where no status was written", async () => {
  const { space, manager, ask, served } = scene;
  const runId = await admittedRun(space, manager);
  await writeJournal(space, runId, [stepEntry({ requestId: runId })]);
  await writeCheckpoint(space, runId, "waiting");
  const answers = { runId, stepKey: STEP };
  await ask({ answers, served: await served(answers) });
});

it("is internal where it has a gap, another run's or a garbled record", async () => {
  const { space, refused, served, askingRun } = scene;
  const step = (run: RunId, n: number) => ({ v: 1, kind: "step", run, n, at: 0, entry: stepEntry() });
  for (const wrong of [
    (run: RunId) => step(run, 4),
    () => step(freshRunId(), 3),
    () => "not json",
    (run: RunId) => ({ ...step(run, 3), more: 1 }),
  ]) {
    const { runId, answers } = await askingRun();
    await appendRecord(space, runId, wrong(runId));
    await refused("internal", { answers, served: await served(answers) });
  }
});

it("and the checkpoint say that the step waits, for an answer", async () => {
  const { space, askingRun } = scene;
  const { token, answers } = await askingRun();
  for (const [state, more] of [
    ["resumed", { settledAnswerId: "a" }],
    ["resumed", {}],
    ["expired", {}],
  ] as const) {
    await writeCheckpoint(space, token, state, more);
    await refusedUnspent(answers, () => writeCheckpoint(space, token, "waiting"));
  }
});

it("refuses an answer to a settled step and leaves its observation", async () => {
  const { answers, append } = await scene.askingRun();
  await append(3, { state: "done" });
  await refusedUnspent(answers, () => append(4, { state: "pending" }));
});

it("and the checkpoint say by which answer the step was settled, for an amendment", async () => {
  const { space, refused, served, ask, askingRun } = scene;
  const { token, answers, append } = await askingRun();
  const amending = { ...answers, amend: true as const };
  await writeCheckpoint(space, token, "resumed", { settledAnswerId: "a" });
  await refused("failed-precondition", { answers: amending, served: await served(amending) });
  await append(3, { state: "done" });
  for (const state of ["waiting", "expired", "resumed"] as const) {
    await writeCheckpoint(space, token, state);
    await refused("failed-precondition", { answers: amending, served: await served(amending) });
  }
  await writeCheckpoint(space, token, "resumed", { settledAnswerId: "a" });
  await ask({ answers: amending, served: await served(amending) });
});

it("names the checkpoint of a held step by its hold", async () => {
  const { space, manager } = scene;
  const runId = await admittedRun(space, manager);
  const requestId = `t-${newUid(systemPorts)}`;
  await writeJournal(space, runId, [stepEntry({ kind: "effect", requestId, hold: null })]);
  await writeCheckpoint(space, requestId, "waiting");
  const answers = { runId, stepKey: "main/effect:deploy#1" };
  await refusedUnspent(answers, () => writeCheckpoint(space, holdToken(requestId), "waiting"));
});
