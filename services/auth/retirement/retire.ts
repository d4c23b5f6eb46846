/**
 * What every door of a retirement does: freeze, then wait until the holder of the plane claim has confirmed the rest,
 * in this replica or in another (lifecycles §1). Not confirmed by the deadline is one code, whatever the cause.
 */
import { AuthorityError, type ErrorDetail, internal, isAuthorityError } from "../../../shared/errors.ts";
import { BARRIER, PEER_WAIT, STAGE_POLL_MS } from "../../../shared/limits.ts";
import { jitter } from "../../../shared/ports.ts";
import { isEnded, type Stage, stageRows } from "../../../shared/rows/stage.ts";
import type { Principal } from "../../../shared/tokens.ts";
import { timeLeft } from "../../../shared/work.ts";
import { blockedDetail, openObligations } from "../barrier/drain.ts";
import { planeRefused } from "../barrier/held.ts";
import type { Visit } from "../visit.ts";
import { freezeLifecycle, type Retire } from "./freeze-lifecycle.ts";

type Asking = Pick<Visit, "context" | "work" | "note">;

export interface Retired {
  /** As the operation's stage reports them; empty once that is forgotten. */
  readonly evictedPrincipals: Principal[];
  /** It had ended before this call. */
  readonly already: boolean;
}

export async function retire(visit: Asking, asked: Retire): Promise<Retired> {
  visit.note({ opId: asked.opId });
  const standing = await freezeLifecycle(visit, asked);
  if (standing === "retired") {
    visit.note({ replayed: true });
    return { evictedPrincipals: evictedIn(await stageOf(visit, asked)), already: true };
  }
  const stage = await confirmed(visit, asked);
  return { evictedPrincipals: evictedIn(stage), already: false };
}

const evictedIn = (stage: Stage | undefined): Principal[] => [...(stage?.evicted ?? [])];

async function stageOf({ context, work }: Asking, { opId }: Retire): Promise<Stage | undefined> {
  return (await context.store.read(stageRows.key({ opId }), work))?.value;
}

/** Resolves once the stage is finished. While this replica holds the claim it runs or joins the barrier itself. */
async function confirmed(visit: Asking, asked: Retire): Promise<Stage> {
  const { context, work } = visit;
  const { ports, retirements } = context;
  const tellAt = work.deadline - Math.min(BARRIER.tellMs, timeLeft(work, ports) / 2);
  const left = (): number => Math.max(0, tellAt - ports.monotonic());
  for (let tries = 0; ; ) {
    const stage = await stageOf(visit, asked);
    if (!stage) throw internal(`stage ${asked.opId} is gone while its gate is frozen`);
    if (isEnded(stage)) return stage;
    if (left() === 0 || work.signal?.aborted) throw await unconfirmed(visit, asked, stage);
    const flight = retirements.run(context, asked.opId);
    if (flight && (await succeedsWithin(visit, flight, left()))) continue;
    const pause = flight ? jitter(ports, PEER_WAIT, tries++) : STAGE_POLL_MS;
    await ports.sleep(Math.min(pause, left()), work.signal).catch(() => {});
  }
}

async function succeedsWithin({ context, work }: Asking, flight: Promise<void>, ms: number): Promise<boolean> {
  const told = new AbortController();
  const stop = work.signal ? AbortSignal.any([work.signal, told.signal]) : told.signal;
  const no = (): boolean => false;
  const late = context.ports.sleep(ms, stop).then(no, no);
  try {
    return await Promise.race([flight.then(() => true, no), late]);
  } finally {
    told.abort();
  }
}

/** Why: what blocks the draining, as this replica sees it, and why this one does not run the barrier itself. */
async function unconfirmed(visit: Asking, { opId, uid }: Retire, { phase }: Stage): Promise<AuthorityError> {
  const { context, work } = visit;
  const { reason } = context.plane;
  if (reason === "corrupt") return internal("the plane row is unreadable");
  const details: ErrorDetail[] = reason ? [...planeRefused(reason).details] : [];
  if (phase === "contained") {
    const open = await openObligations(context, uid, work).catch((error: unknown) => {
      if (!isAuthorityError(error)) throw error;
      return undefined;
    });
    if (open && open.rows.length + open.unreadable.length > 0) details.unshift(blockedDetail(opId, open));
  }
  return new AuthorityError("unavailable", "the retirement is not confirmed yet, ask again; access is denied already", {
    details,
    reason: `retirement ${opId} at phase ${phase}${reason ? `, plane: ${reason}` : ""}`,
    outcome: "unknown",
  });
}
