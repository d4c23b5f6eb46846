/**
 * Counters of one endpoint, right for asynchronous handlers (wire §9). The framework counts only the synchronous part,
 * so these are copied over its own when it is asked. Integers only: a fraction makes the Go tools refuse the answer.
 */
import { headerText } from "../../shared/errors.ts";

const DROPS = ["subject", "broker-made", "reply-not-inbox"] as const;
export type Drop = (typeof DROPS)[number];

/** What the framework keeps per endpoint and lets us overwrite. */
export interface FrameworkStatistics {
  num_requests: number;
  num_errors: number;
  last_error?: string;
  processing_time: number;
  average_processing_time: number;
}

export class EndpointStatistics {
  #requests = 0;
  #errors = 0;
  #lastError: string | undefined;
  #nanoseconds = 0;
  #inFlight = 0;
  readonly #dropped = new Map<Drop, number>();
  readonly #codes = new Map<string, number>();

  /** Called when a message is delivered; the returned function when its work is finished. */
  start(nowMs: () => number): (failure?: { code: string; message: string } | { dropped: Drop }) => void {
    const began = nowMs();
    this.#inFlight += 1;
    return (failure) => {
      this.#inFlight -= 1;
      this.#requests += 1;
      this.#nanoseconds += Math.round((nowMs() - began) * 1e6);
      if (!failure) return;
      this.#errors += 1;
      if ("dropped" in failure) {
        this.#dropped.set(failure.dropped, (this.#dropped.get(failure.dropped) ?? 0) + 1);
        this.#lastError = `dropped: ${failure.dropped}`;
      } else {
        this.#codes.set(failure.code, (this.#codes.get(failure.code) ?? 0) + 1);
        this.#lastError = headerText(`${failure.code}: ${failure.message}`);
      }
    };
  }

  copyTo(target: FrameworkStatistics): void {
    target.num_requests = this.#requests;
    target.num_errors = this.#errors;
    if (this.#lastError === undefined) delete target.last_error;
    else target.last_error = this.#lastError;
    target.processing_time = this.#nanoseconds;
    target.average_processing_time = this.#requests === 0 ? 0 : Math.round(this.#nanoseconds / this.#requests);
  }

  data(): { inFlight: number; dropped: Record<Drop, number>; codes: Record<string, number> } {
    const dropped = Object.fromEntries(DROPS.map((drop) => [drop, this.#dropped.get(drop) ?? 0])) as Record<
      Drop,
      number
    >;
    return { inFlight: this.#inFlight, dropped, codes: Object.fromEntries([...this.#codes].sort()) };
  }

  reset(): void {
    this.#requests = 0;
    this.#errors = 0;
    this.#lastError = undefined;
    this.#nanoseconds = 0;
    this.#dropped.clear();
    this.#codes.clear();
  }
}
