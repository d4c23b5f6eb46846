/** Exit codes of `serve` and `gateway`, and what each means to their supervisor (lifecycles §8.4). */
import { isAuthorityError } from "./errors.ts";

export const EXIT = {
  /** closed on request, everything confirmed */
  closed: 0,
  /** closed itself, or a close failed; restart */
  failed: 1,
  /** bad flags or inputs; secrets, settings or a stream's shape that refuse the start; no restart */
  refused: 2,
  /** superseded; no restart */
  superseded: 3,
  /** no broker or store; restart */
  unavailable: 4,
  /** a second signal: at once */
  interrupted: 130,
} as const;

const REFUSALS = new Set(["bad-request", "failed-precondition", "unauthenticated", "permission-denied"]);

/** Of a start that failed for good. */
export function exitOfStart(error: unknown): number {
  if (!isAuthorityError(error)) return EXIT.failed;
  if (error.code === "unavailable") return EXIT.unavailable;
  return REFUSALS.has(error.code) ? EXIT.refused : EXIT.failed;
}
