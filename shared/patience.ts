/** Waiting at a start for what is not there yet, so that any order of services works (lifecycles §8.1). */
import type { Logger } from "pino";
import { isAuthorityError, textOf } from "./errors.ts";
import { PEER_WAIT } from "./limits.ts";
import { jitter, type Ports } from "./ports.ts";

export interface Patience {
  readonly ports: Ports;
  /** Aborts when the start is given up. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Repeats while the answer is `unavailable`, until the start is given up; any other refusal ends it at once. */
export async function patiently<T>({ ports, signal, log }: Patience, attempt: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!isAuthorityError(error, "unavailable") || signal.aborted) throw error;
      log.info({ reason: error.reason ?? textOf(error) }, "waiting");
      await ports.sleep(jitter(ports, PEER_WAIT, tries), signal).catch(() => {});
      if (signal.aborted) throw error;
    }
  }
}
