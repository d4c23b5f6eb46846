/** Runs as their drivers leave them: admitted, running, with a journal and the checkpoints that it names. */
import { jetstreamManager } from "@nats-io/jetstream";
import { newGeneration, systemPorts } from "../../../../shared/ports.ts";
import { admissionRows, revocationRows } from "../../../../shared/rows/admission.ts";
import { type Checkpoint, checkpointRows } from "../../../../shared/rows/mesh/checkpoint.ts";
import type { Activation, Step } from "../../../../shared/rows/mesh/journal.ts";
import { type RunStatus, runStatusRows } from "../../../../shared/rows/mesh/run.ts";
import { create } from "../../../../shared/store/message.ts";
import type { EnvelopeId, RunId, TakeoverId } from "../../../../shared/tokens.ts";
import { ownWork } from "../../../../shared/work.ts";
import { freshRunId, freshTakeoverId, type TestManager } from "../../../kit/manager.ts";
import type { TestSpace } from "../../../kit/space.ts";
import { MANAGER } from "../scene.ts";

const ports = systemPorts;

/** Lets a run of the manager's own person in; how that is decided is the admission's own test. */
export async function admittedRun(space: TestSpace, manager: TestManager, runId = freshRunId()): Promise<RunId> {
  const { owner, actor, uid } = manager.person;
  const generation = newGeneration(ports);
  const nothing = { allow: { mode: "none" as const }, deny: [] };
  const admission = {
    version: 1 as const,
    space: space.space,
    endpoint: MANAGER,
    runId,
    instanceId: manager.instanceId,
    caller: { owner, actor, uid, generation },
    ceiling: { publish: nothing, subscribe: nothing },
    provenance: {
      kind: "issued" as const,
      ref: { space: space.space, owner, actor, uid, generation },
      resolvedRevision: 1,
    },
    admittedAt: ports.now(),
  };
  await write(space, create(admissionRows.key({ endpoint: MANAGER, runId }), admission));
  return runId;
}

export async function markRevoked(space: TestSpace, runId: RunId): Promise<void> {
  const marker = { version: 1 as const, runId, reason: "over", by: "somebody", revokedAt: ports.now() };
  await write(space, create(revocationRows.key({ endpoint: MANAGER, runId }), marker));
}

async function write({ store }: TestSpace, message: ReturnType<typeof create>): Promise<void> {
  await store.commit([message], ownWork(ports, 5_000));
}

/** What a run is held under. */
export interface Held {
  readonly runId: RunId;
  readonly takeoverId: TakeoverId;
  readonly holder: string;
  readonly epoch: number;
  readonly fencingToken: number;
}

export const heldBy = (manager: TestManager, runId: RunId, takeoverId = freshTakeoverId()): Held => ({
  runId,
  takeoverId,
  holder: `${manager.keys.supervisor.public}.${takeoverId}`,
  epoch: 1,
  fencingToken: 1,
});

const statusKey = (runId: RunId) => runStatusRows.key({ endpoint: MANAGER, runId });

/** The status as the driver of that attempt writes it; gives its revision. */
export function writeStatus(space: TestSpace, held: Held, change: Partial<RunStatus> = {}): Promise<number> {
  const { holder, epoch, fencingToken, runId } = held;
  const at = ports.now();
  return space.put(statusKey(runId), {
    v: 1,
    observedSpecRevision: 1,
    state: "running",
    holder,
    epoch,
    fencingToken,
    journalHigh: 0,
    at,
    ...change,
  });
}

/** The stream of journals, which the mesh makes and not `auth`. */
export async function createJournals({ space, roots }: TestSpace): Promise<void> {
  const { streams } = await jetstreamManager(roots.space);
  await streams.add({ name: `WFJ_${space}`, subjects: [`cotal.${space}.wfj.*`], storage: "file" });
}

export type StepEntry = Step["entry"];

export const stepEntry = (change: Partial<StepEntry> = {}): StepEntry => ({
  scope: "main",
  kind: "checkpoint",
  name: "deploy",
  occurrence: 1,
  requestId: "req-1",
  state: "pending",
  ...change,
});

/** The journal from its first record on: an activation, then these steps. */
export async function writeJournal(space: TestSpace, run: RunId, entries: readonly StepEntry[]): Promise<void> {
  const at = ports.now();
  const first: Activation = {
    v: 1,
    kind: "activation",
    run,
    n: 1,
    holder: "h.t",
    fencingToken: 1,
    epoch: 1,
    replayedTo: 0,
    at,
  };
  const steps: Step[] = entries.map((entry, index) => ({ v: 1, kind: "step", run, n: index + 2, at, entry }));
  for (const record of [first, ...steps]) await appendRecord(space, run, record);
}

/** Any one message on a run's journal. */
export async function appendRecord({ space, roots }: TestSpace, run: RunId, record: unknown): Promise<void> {
  const text = typeof record === "string" ? record : JSON.stringify(record);
  await roots.space.request(`cotal.${space}.wfj.${run}`, text, { timeout: 5_000 });
}

export const writeCheckpoint = (
  space: TestSpace,
  token: string,
  state: Checkpoint["state"],
  more: Partial<Checkpoint> = {},
): Promise<number> =>
  space.put(checkpointRows.key({ endpoint: MANAGER, token: token as EnvelopeId }), { v: 1, state, ...more });
