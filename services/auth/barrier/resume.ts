/** What the holder of the claim does by itself: finishes every retirement that was begun (lifecycles §5). */
import { AuthorityError, internal, isAuthorityError, reasonOf } from "../../../shared/errors.ts";
import { BARRIER, RESCAN_MS } from "../../../shared/limits.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { gateRows } from "../../../shared/rows/gate.ts";
import { isEnded, type Stage, stageRows } from "../../../shared/rows/stage.ts";
import type { Uid } from "../../../shared/tokens.ts";
import { ownWork, type Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";
import type { Held } from "./held.ts";
import { leftAlone } from "./metrics.ts";
import { expireSessions } from "./overdue.ts";
import type { Retirements } from "./retirements.ts";
import { Signal } from "./signal.ts";

/** Scans after the win, on each change of a gate, and with every rescan, until the claim is lost. */
export async function resumeWhileHeld(context: AuthContext, held: Held, retirements: Retirements): Promise<void> {
  const { store, ports, log } = context;
  const { signal } = held;
  const hinted = new Signal();
  void store.watch({ family: gateRows, prefix: {} }, signal, () => hinted.notify()).catch(() => {});
  for (let expireAt = 0; !signal.aborted; ) {
    const seen = hinted.count;
    try {
      await resumeAll(context, held, retirements);
      if (ports.monotonic() >= expireAt) {
        await expireSessions(context, held, ownWork(ports, BARRIER.stepMs, signal));
        expireAt = ports.monotonic() + RESCAN_MS;
      }
    } catch (error) {
      // The claim is kept; who needs a barrier is told that it is not confirmed.
      if (!signal.aborted) log.warn({ err: reasonOf(error) }, "unfinished barriers not scanned");
    }
    await hinted.next(seen, ports, RESCAN_MS, signal);
  }
}

/** Begins every retirement that is not finished, the oldest first; one that fails blocks no other. */
async function resumeAll(context: AuthContext, held: Held, retirements: Retirements): Promise<void> {
  const work = ownWork(context.ports, BARRIER.stepMs, held.signal);
  const { entries, corrupt } = await held.hold(() => context.store.scan(stageRows, {}, work));
  for (const key of corrupt) alone(context, "unreadable", { key });
  const live = entries.filter(({ value }) => !isEnded(value)).sort((one, other) => one.value.at - other.value.at);
  for (const stage of live) {
    try {
      if (await isResumable(context, stage, work)) void retirements.run(context, stage.value.opId as Uid);
    } catch (error) {
      if (!isAuthorityError(error, "internal")) throw error;
      alone(context, "contradiction", { opId: stage.value.opId, err: error.reason });
    }
  }
}

async function isResumable(context: AuthContext, { value: stage }: Entry<Stage>, work: Work): Promise<boolean> {
  const uid = gateRows.parts(stage.gate)?.uid;
  // An endpoint instance's: its registrar resumes it, a repair does, or the operator's repeat.
  if (uid === undefined) return false;
  if (stage.kind !== "retirement") {
    alone(context, "other-kind", { opId: stage.opId, opKind: stage.kind });
    return false;
  }
  const gate = await context.store.read(gateRows.key({ uid }), work);
  const { state, op, generation } = gate?.value ?? {};
  if (state === "frozen" && op?.opId === stage.opId && generation === stage.fromGeneration) return true;
  const now = await context.store.read(stageRows.key({ opId: stage.opId as Uid }), work);
  if (now && isEnded(now.value)) return false; // since the scan
  throw internal(`stage ${stage.opId} is live, its gate ${state ?? "absent"} at generation ${generation}`);
}

function alone({ log }: Pick<AuthContext, "log">, reason: string, fields: Record<string, unknown>): void {
  leftAlone.inc({ reason });
  log.error({ ...fields, reason }, "left alone");
}

/** A gate that a kind of barrier holds which this version does not run. */
export function heldByOther(context: Pick<AuthContext, "log">, opId: string, opKind: string): AuthorityError {
  alone(context, "other-kind", { opId, opKind });
  return new AuthorityError("failed-precondition", "this lifecycle is under an operation that is not run here");
}
