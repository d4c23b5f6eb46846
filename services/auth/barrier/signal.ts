/** Wakes who waits for something to have changed; what changed while nobody waited is not missed. */
import type { Ports } from "../../../shared/ports.ts";

export class Signal {
  #count = 0;
  readonly #waiting = new Set<() => void>();

  /** Rises with each change. */
  get count(): number {
    return this.#count;
  }

  notify(): void {
    this.#count += 1;
    for (const wake of this.#waiting) wake();
  }

  /** Resolves once there was a change after the one counted as `seen`, after `ms`, or when the signal aborts. */
  async next(seen: number, ports: Ports, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#count !== seen || signal.aborted) return;
    const woken = new AbortController();
    const wake = (): void => woken.abort();
    this.#waiting.add(wake);
    await ports.sleep(ms, AbortSignal.any([signal, woken.signal])).catch(() => {});
    this.#waiting.delete(wake);
  }
}
