/**
 * The one engine of all barriers: what follows a freeze, step by step, by the table of kinds (lifecycles §1.2). Every
 * step may be repeated, and whoever resumes begins with the first: a proof of absence holds for its sweep only.
 */
import type { Eviction } from "../../../shared/custody.ts";
import { internal } from "../../../shared/errors.ts";
import { BARRIER } from "../../../shared/limits.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";
import { revokeRows } from "./contain.ts";
import { evictReported, evictVerified, holdersOf } from "./evict.ts";
import { type Barrier, type Contained, KINDS, type Step } from "./kinds.ts";
import { advance, reached, reporting } from "./stage.ts";

/** How a barrier ended. */
export interface Ended<T> extends Contained {
  /** What its kind makes of the end. */
  readonly result: T;
  readonly evictions: readonly Eviction[];
}

/** Runs all steps. `conflict` where the fence moved, `unavailable` where a proof is missing; `begins` names each step. */
export async function runBarrier<T>(
  context: AuthContext,
  barrier: Barrier<T>,
  begins: (step: Step) => void = () => {},
): Promise<Ended<T>> {
  const run = new Run(context, barrier);
  for (const step of KINDS[barrier.kind].steps) {
    barrier.proceed();
    begins(step);
    await run[step](barrier.work());
    await context.afterStep?.({ kind: barrier.kind, opId: barrier.opId, step });
  }
  return run.ended();
}

/** One method per step. */
class Run<T> implements Record<Step, (work: Work) => Promise<void>> {
  readonly #context: AuthContext;
  readonly #barrier: Barrier<T>;
  #contained: Contained = { rows: [], revoked: [], principals: [] };
  #evictions: readonly Eviction[] = [];
  #result: { readonly value: T } | undefined;

  constructor(context: AuthContext, barrier: Barrier<T>) {
    this.#context = context;
    this.#barrier = barrier;
  }

  async touch(work: Work): Promise<void> {
    await this.#barrier.touch?.(work);
  }

  async contain(work: Work): Promise<void> {
    const { rows, revoked } = await revokeRows(this.#context, this.#barrier, work);
    const principals = [...new Set([...(this.#barrier.also ?? []), ...holdersOf(rows)])];
    this.#contained = { rows, revoked, principals };
  }

  async evict(work: Work): Promise<void> {
    const { principals } = this.#contained;
    if (KINDS[this.#barrier.kind].eviction === "reported") {
      this.#evictions = await evictReported(this.#context, principals, BARRIER.endEvictMs, work);
      return;
    }
    this.#evictions = await this.#barrier.hold(() => evictVerified(this.#context, principals, work));
    await advance(
      this.#context,
      this.#barrier,
      (stage) => reached(reporting(stage, principals), "contained"),
      [],
      work,
    );
  }

  async drain(work: Work): Promise<void> {
    await this.#barrier.drain?.(work);
    await advance(this.#context, this.#barrier, (stage) => reached(stage, "drained"), [], work);
  }

  async frontier(work: Work): Promise<void> {
    await this.#barrier.frontier?.(work);
  }

  async finish(work: Work): Promise<void> {
    const { end: phase } = KINDS[this.#barrier.kind];
    const { principals } = this.#contained;
    const value = await this.#barrier.finish(
      this.#contained,
      (along) =>
        advance(this.#context, this.#barrier, (stage) => ({ ...reporting(stage, principals), phase }), along, work),
      work,
    );
    this.#result = { value };
  }

  ended(): Ended<T> {
    if (!this.#result) throw internal(`a barrier of kind ${this.#barrier.kind} without an end`);
    return { ...this.#contained, result: this.#result.value, evictions: this.#evictions };
  }
}
