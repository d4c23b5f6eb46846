/** A service may be started before what it needs: it waits (lifecycles §8.1). */
import { isAuthorityError } from "../../shared/errors.ts";
import { PEER_WAIT } from "../../shared/limits.ts";
import { jitter } from "../../shared/ports.ts";
import type { ServiceDeps } from "../service.ts";

/** Tries again while it is `unavailable`, until the start is given up; any other error is final. */
export async function whenAvailable<T>(
  { ports, signal, log }: Pick<ServiceDeps, "ports" | "signal" | "log">,
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isAuthorityError(error, "unavailable") || signal.aborted) throw error;
      log.info({ reason: error.reason }, "waiting");
      await ports.sleep(jitter(ports, PEER_WAIT, attempt), signal).catch(() => {});
      if (signal.aborted) throw error;
    }
  }
}
