/** Whose turn it is: so many at once, in order of arrival, nobody after too long a wait (identity §9.2, step 1). */
import { CALLOUT } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";

/** A place among those worked on; release it once. */
export interface Turn {
  release(): void;
}

interface Waiter {
  readonly arrived: number;
  readonly settle: (turn: Turn | undefined) => void;
}

export class Turns {
  readonly #ports: Ports;
  readonly #atOnce: number;
  readonly #turnMs: number;
  /** In order of arrival. */
  readonly #waiting = new Set<Waiter>();
  #working = 0;
  #watching = false;

  constructor(ports: Ports, { atOnce, turnMs }: { atOnce: number; turnMs: number } = CALLOUT) {
    this.#ports = ports;
    this.#atOnce = atOnce;
    this.#turnMs = turnMs;
  }

  get working(): number {
    return this.#working;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** A turn, or `undefined` if it did not come in time. */
  take(): Promise<Turn | undefined> {
    if (this.#waiting.size === 0 && this.#working < this.#atOnce) return Promise.resolve(this.#begin());
    return new Promise((settle) => {
      this.#waiting.add({ arrived: this.#ports.monotonic(), settle });
      void this.#watch();
    });
  }

  #begin(): Turn {
    this.#working += 1;
    let open = true;
    return {
      release: () => {
        if (!open) return;
        open = false;
        this.#working -= 1;
        this.#admit();
      },
    };
  }

  #admit(): void {
    while (this.#working < this.#atOnce) {
      const [next] = this.#waiting;
      if (!next) return;
      this.#waiting.delete(next);
      next.settle(this.#overdue(next) ? undefined : this.#begin());
    }
  }

  #overdue(waiter: Waiter): boolean {
    return this.#ports.monotonic() - waiter.arrived >= this.#turnMs;
  }

  /** Denies each waiter at its time, not only when a place falls free: all of them may hang on a dead store. */
  async #watch(): Promise<void> {
    if (this.#watching) return;
    this.#watching = true;
    for (;;) {
      const [oldest] = this.#waiting;
      if (!oldest) break;
      if (this.#overdue(oldest)) {
        this.#waiting.delete(oldest);
        oldest.settle(undefined);
        // A storm ends many at once; those at work go on between two of them.
        await new Promise((resolve) => setImmediate(resolve));
      } else {
        await this.#ports.sleep(oldest.arrived + this.#turnMs - this.#ports.monotonic());
      }
    }
    this.#watching = false;
  }
}
