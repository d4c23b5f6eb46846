/** The bounds of one piece of work, and the record of what became of its writes. */
import { AuthorityError, type Outcome } from "./errors.ts";
import type { Ports } from "./ports.ts";

/**
 * What the broker said of the writes that a request sent. The host derives the reply's outcome from it (wire §5):
 * a handler never states one.
 */
export class Effects {
  #inFlight = 0;
  #acked = 0;
  #unsettled = 0;
  #done = false;

  /** Counts a write as in flight until its answer is definite or given up. */
  async during<T>(write: Promise<T>): Promise<T> {
    this.#inFlight += 1;
    try {
      return await write;
    } finally {
      this.#inFlight -= 1;
    }
  }

  /** A write was acknowledged, or a connection kicked. */
  acked(): void {
    this.#acked += 1;
  }

  /** A write was sent and nothing definite came back. */
  unsettled(): void {
    this.#unsettled += 1;
  }

  /** Every intended write is acknowledged; a later failure changes nothing about that. */
  complete(): void {
    this.#done = true;
  }

  /** The outcome of a refusal at this point. */
  get outcome(): Outcome {
    if (this.#inFlight > 0 || this.#unsettled > 0) return "unknown";
    if (this.#acked === 0) return "not-executed";
    return this.#done ? "executed" : "unknown";
  }
}

export interface Work {
  /** Monotonic milliseconds after which no effect may start. */
  readonly deadline: number;
  /** Aborts when the service gives the request up. */
  readonly signal?: AbortSignal;
  readonly effects: Effects;
}

/** Work of the service's own, outside any request. */
export const ownWork = (ports: Ports, ms: number, signal?: AbortSignal): Work => ({
  deadline: ports.monotonic() + ms,
  effects: new Effects(),
  ...(signal ? { signal } : {}),
});

/** Milliseconds left, never below zero. */
export const timeLeft = (work: Work, ports: Ports): number => Math.max(0, work.deadline - ports.monotonic());

/** Refuses once the deadline has passed or the work was given up; call it before any effect. */
export function assertInTime(work: Work, ports: Ports): void {
  if (work.signal?.aborted) throw new AuthorityError("unavailable", "the service is stopping, ask again");
  if (ports.monotonic() >= work.deadline) throw new AuthorityError("deadline-exceeded", "the deadline has passed");
}
