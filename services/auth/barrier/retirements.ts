/** Retirements under way in this replica: so many at once, one flight per operation (lifecycles §1). */
import { internal, isAuthorityError, reasonOf, textOf } from "../../../shared/errors.ts";
import { BARRIER } from "../../../shared/limits.ts";
import { isEnded, stageRows } from "../../../shared/rows/stage.ts";
import { Places } from "../../../shared/store/queue.ts";
import { lostOn } from "../../../shared/store/write.ts";
import type { Uid } from "../../../shared/tokens.ts";
import { ownWork } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";
import type { Held } from "./held.ts";
import type { Step } from "./kinds.ts";
import { unfinished } from "./metrics.ts";
import type { PlaneClaim } from "./plane.ts";
import { frozen, retirement, retiringOf } from "./retirement.ts";
import { runBarrier } from "./run.ts";

export class Retirements {
  readonly #plane: Pick<PlaneClaim, "held">;
  readonly #places = new Places(BARRIER.atOnce);
  readonly #flights = new Map<Uid, Promise<void>>();

  constructor(plane: Pick<PlaneClaim, "held">) {
    this.#plane = plane;
  }

  /**
   * Runs a frozen retirement to its end, or joins the run there is. Nothing where this replica does not hold the claim.
   * Rejects where it could not end now; it is tried again then by whoever asks, and by the resuming.
   */
  run(context: AuthContext, opId: Uid): Promise<void> | undefined {
    const flight = this.#flights.get(opId);
    if (flight) return flight;
    const { held } = this.#plane;
    if (!held) return undefined;
    const started = this.#places.run(() => fly(context, opId, held)).finally(() => this.#flights.delete(opId));
    started.catch(() => {}); // whoever asked may have gone
    this.#flights.set(opId, started);
    return started;
  }

  /** Resolves once nothing is under way. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#flights.values());
  }
}

async function fly(context: AuthContext, opId: Uid, held: Held): Promise<void> {
  const { store, ports, mailbox } = context;
  const log = context.log.child({ opId });
  let step: Step | "begin" = "begin";
  try {
    held.proceed();
    const work = ownWork(ports, BARRIER.stepMs, held.signal);
    const stage = await store.read(stageRows.key({ opId }), work);
    if (!stage) throw internal(`no stage of ${opId}`);
    if (isEnded(stage.value)) return;
    const retiring = retiringOf(stage.value);
    await frozen(context, retiring, work);
    const { principals, revoked } = await runBarrier(context, retirement(context, held, retiring), (begun) => {
      step = begun;
    });
    log.info({ principal: stage.value.principal, evicted: principals.length, revoked: revoked.length }, "retired");
    // What is left behind is inert, since no credential names it.
    await mailbox
      .remove(retiring, ownWork(ports, BARRIER.stepMs))
      .catch((error: unknown) => log.warn({ err: textOf(error) }, "durables not removed"));
  } catch (error) {
    if (lostOn(error, held.entry.key)) held.lose("lost");
    unfinished.inc({ kind: "retirement", step });
    const reason = reasonOf(error);
    log[isAuthorityError(error, "internal") ? "error" : "warn"]({ step, err: reason }, "retirement not finished");
    throw error;
  }
}
