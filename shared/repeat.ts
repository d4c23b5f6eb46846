/** When a caller's request is made again without a word from the caller: only where nothing can have happened (wire §4). */
import type { Operation } from "./contracts/operation.ts";
import { AuthorityError, isAuthorityError } from "./errors.ts";
import { PEER_WAIT, WIRE } from "./limits.ts";
import { jitter, type Ports } from "./ports.ts";

export interface Asking {
  /** Budget in ms, 15,000 by default and 60,000 at most. */
  readonly deadlineMs?: number;
  /** Never repeats, whatever the outcome. */
  readonly once?: boolean;
  /** Ends the waiting between two tries; over HTTP a try under way, too. */
  readonly signal?: AbortSignal;
}

/** Asks with what is left of the budget, and again after a *peer wait* where that is safe and in time. */
export async function repeating<T>(
  operation: Operation,
  ports: Ports,
  { deadlineMs = WIRE.defaultDeadlineMs, once, signal }: Asking,
  ask: (leftMs: number) => Promise<T>,
): Promise<T> {
  const until = ports.monotonic() + Math.min(deadlineMs, WIRE.maxDeadlineMs);
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await ask(Math.max(1, Math.ceil(until - ports.monotonic())));
    } catch (error) {
      const wait = jitter(ports, PEER_WAIT, attempt);
      if (once || !repeatable(operation, error) || ports.monotonic() + wait >= until) throw error;
      await ports.sleep(wait, signal).catch((cause: unknown) => {
        throw new AuthorityError("cancelled", "given up before it was asked again", { outcome: "not-executed", cause });
      });
    }
  }
}

/** `unavailable` that changed nothing, and full places. */
function repeatable({ effect }: Operation, error: unknown): boolean {
  if (!isAuthorityError(error, "unavailable") && !isAuthorityError(error, "resource-exhausted")) return false;
  return effect === "read" || error.outcome === "not-executed";
}
