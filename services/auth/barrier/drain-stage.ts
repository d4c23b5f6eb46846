/** The seam for what settles accepted work on its own: cancellers, pool reconcilers, appliers (lifecycles §3). */
import type { Entry } from "../../../shared/rows/family.ts";
import type { Obligation } from "../../../shared/rows/mesh/obligation.ts";
import type { Triple, Uid } from "../../../shared/tokens.ts";

export interface DrainStage {
  readonly name: string;
  accepts(row: Entry<Obligation>): boolean;
  /** `settled` once the row itself says `rejected` or `terminal`. */
  settle(row: Entry<Obligation>, target: Triple, opId: Uid, signal: AbortSignal): Promise<"settled" | "pending">;
}

/** None yet: what they would settle stays pending, and the retirement with it. */
export const DRAIN_STAGES: readonly DrainStage[] = [];
