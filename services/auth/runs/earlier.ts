/** Ends credentials of a run: their rows, then, best effort, whoever is connected with them (state §5, Run rows). */

import { runHolder } from "../../../shared/credentials/roles.ts";
import { askEvict } from "../../../shared/custody.ts";
import { RUNS } from "../../../shared/limits.ts";
import { type EpCred, epCredRows } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type Owner, principalOf, type RunId, type Uid } from "../../../shared/tokens.ts";
import { Effects, timeLeft } from "../../../shared/work.ts";
import { MANAGER } from "../context.ts";
import { revoke } from "../issue/issue.ts";
import type { Visit } from "../visit.ts";
import { runEvictions } from "./metrics.ts";

type Context = Pick<Visit, "context" | "work" | "log">;

/** Revokes the active driver and mediator rows of a run, in one commit. */
export async function revokeRunRows(visit: Context, instanceId: Uid, runId: RunId): Promise<Entry<EpCred>[]> {
  const { context, work } = visit;
  const { entries, corrupt } = await context.store.scan(epCredRows, { endpoint: MANAGER, instanceId }, work);
  if (corrupt.length > 0) throw epCredRows.refusal(corrupt[0] ?? "", "garbled");
  const rows = entries.filter(({ value }) => value.state === "active" && value.runId === runId);
  if (rows.length > 0) await revoke(visit, rows);
  return rows;
}

/** True where the principal is verified gone; what is missed ends with its credential, `standingTtl` at most. */
export async function evictRun({ context, work, log }: Context, owner: Owner, runId: RunId): Promise<boolean> {
  const principal = principalOf(owner, runHolder(runId).actor);
  const { ports, peers } = context;
  const bounded = {
    ...work,
    effects: new Effects(),
    deadline: ports.monotonic() + Math.min(RUNS.evictMs, timeLeft(work, ports)),
  };
  const [eviction] = await askEvict(peers, [principal], bounded, ports);
  const gone = eviction?.verifiedGone === true;
  runEvictions.inc({ result: gone ? "gone" : "unverified" });
  log[gone ? "info" : "warn"]({ runId, principal, verifiedGone: gone, note: eviction?.note }, "run evicted");
  return gone;
}
