/**
 * What an issuance costs beside the commit it cannot do without, and whether that grows with the rows in the stream:
 * at most 2.5 times the commit, and at most 1.15 times as much among 100,000 rows as among 1,000. One request at a
 * time, on two real spaces; all that is compared takes turns, so that the machine's moods hit each alike.
 */
import { managerRenew } from "../../shared/contracts/auth/manager/renew.ts";
import { runAttempt } from "../../shared/contracts/auth/runs/run-attempt.ts";
import type { Operation } from "../../shared/contracts/operation.ts";
import { systemPorts } from "../../shared/ports.ts";
import { epCredRows } from "../../shared/rows/credential.ts";
import { fenced } from "../../shared/store/message.ts";
import type { RunId } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import type { TestManager } from "../kit/manager.ts";
import { freshCredentialId, serveCred } from "../kit/rows.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { attemptOf, renewal } from "../races/mixed-requests.ts";
import { admittedRun } from "../services/auth/runs/runs.ts";
import { gateKeyOf, MANAGER } from "../services/auth/scene.ts";
import { fill } from "./credential-rows.ts";
import { verdict } from "./verdict.ts";

const ROUNDS = 200;
const WARM = 20;
/** Requests go round so many, as an instance's own rows are few beside those of a space. */
const MANAGERS = 10;
/** Both operations write two rows in one commit. */
const ROWS = 2;
const FEW = 1_000;
const MANY = 100_000;

const MEASURED = ["commit", "renew", "attempt"] as const;
type Measured = (typeof MEASURED)[number];

interface Crew {
  readonly manager: TestManager;
  /** Takes the bare commits and the renewals, so that the other has the rows of its runs alone. */
  readonly idle: TestManager;
  readonly runs: RunId[];
}

async function crewOf(space: TestSpace, name: string): Promise<Crew> {
  const granted = { scope: ["supervise", "run"], allowSubscribe: ["team.>"], allowPublish: ["team.>"] };
  const person = await space.person(name, granted);
  const [manager, idle] = await Promise.all([
    space.manager(person, { upTo: "activate" }),
    space.manager(person, { upTo: "activate" }),
  ]);
  const runs: RunId[] = [];
  for (let n = 0; n < (ROUNDS + WARM) / MANAGERS; n += 1) runs.push(await admittedRun(space, manager));
  return { manager, idle, runs };
}

/** The same number of rows of the same size, fenced on the gate as an issuance's are. */
async function bareCommit({ store }: TestSpace, manager: TestManager): Promise<number> {
  const gate = await store.read(gateKeyOf(manager));
  if (!gate) throw new Error("no gate");
  const { owner, actor, uid: lifecycleUid } = manager.person;
  const grantedBy = { kind: "actor" as const, owner, actor, lifecycleUid };
  const rows = Array.from({ length: ROWS }, () => {
    const credentialId = freshCredentialId();
    const key = epCredRows.key({ endpoint: MANAGER, instanceId: manager.instanceId, credentialId });
    return fenced(key, serveCred(manager.uid, { credentialId, grantedBy }), gate);
  });
  const work = ownWork(systemPorts, 10_000);
  return timed(() => store.commit(rows, work));
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** A space with so many rows, and managers that have issued nothing else. */
interface Ground {
  readonly rows: number;
  readonly space: TestSpace;
  readonly crews: readonly Crew[];
  readonly took: Readonly<Record<Measured, number[]>>;
}

async function groundWith(rows: number): Promise<Ground> {
  const space = await startSpace({ services: ["auth", "exchange"] });
  await fill(space, rows);
  const crews: Crew[] = [];
  for (let n = 0; n < MANAGERS; n += 1) crews.push(await crewOf(space, `person-${n}`));
  return { rows, space, crews, took: { commit: [], renew: [], attempt: [] } };
}

async function measure({ space, crews, took }: Ground, round: number): Promise<void> {
  const ask = ({ client }: TestManager, operation: Operation, args: object) =>
    timed(() => client.call(operation, args as never, { once: true }));
  const crew = crews[round % crews.length];
  const runId = crew?.runs.pop();
  if (!crew || !runId) throw new Error("too few runs");
  const { manager, idle } = crew;
  const now = {
    commit: await bareCommit(space, idle),
    renew: await ask(idle, managerRenew, renewal(idle)),
    attempt: await ask(manager, runAttempt, attemptOf(manager, runId)),
  };
  if (round >= WARM) for (const of of MEASURED) took[of].push(now[of]);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

const round2 = (value: number): number => Number(value.toFixed(2));

const grounds: Ground[] = [];
try {
  for (const rows of [FEW, MANY]) grounds.push(await groundWith(rows));
  for (let round = 0; round < ROUNDS + WARM; round += 1) for (const ground of grounds) await measure(ground, round);
  const medians = grounds.map(({ rows, took }) => ({
    rows,
    commit: median(took.commit),
    renew: median(took.renew),
    attempt: median(took.attempt),
  }));
  console.table(
    medians.map(({ rows, commit, renew, attempt }) => ({
      "credential rows": rows,
      "bare commit ms": round2(commit),
      "manager-renew ms": round2(renew),
      "to bare": round2(renew / commit),
      "run-attempt ms": round2(attempt),
      "to bare ": round2(attempt / commit),
    })),
  );
  const [few, many] = medians;
  if (!few || !many) throw new Error("a ground was not measured");
  for (const of of MEASURED) {
    if (of !== "commit") {
      verdict({
        what: of,
        ratio: few[of] / few.commit,
        baseline: "a bare commit of as many rows",
        target: { atMost: 2.5 },
      });
    }
    const baseline = `the same among ${FEW} rows`;
    verdict({ what: `${of} among ${MANY} rows`, ratio: many[of] / few[of], baseline, target: { atMost: 1.15 } });
  }
} finally {
  await Promise.all(grounds.map(({ space }) => space.stop()));
}
