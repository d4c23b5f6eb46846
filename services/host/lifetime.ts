/** How long a service keeps going what it has begun: until it is closed, or its start fails (lifecycles §8.1). */
import { setMaxListeners } from "node:events";
import { runCloseSteps } from "../../shared/nats/owned.ts";
import type { RunningService, ServiceDeps } from "../service.ts";

/**
 * Starts with a lifetime of its own, which `close` is to end. A start that fails ends it and closes the connections
 * under these labels; nothing opens them again.
 */
export async function withLifetime(
  { owned, log }: Pick<ServiceDeps, "owned" | "log">,
  labels: readonly string[],
  start: (life: AbortController) => Promise<RunningService>,
): Promise<RunningService> {
  const life = new AbortController();
  setMaxListeners(0, life.signal); // one per loop that waits
  try {
    return await start(life);
  } catch (error) {
    life.abort();
    const steps = owned.closeSteps(...labels);
    await runCloseSteps(steps).catch((failure: unknown) => log.warn({ err: failure }, "start not unwound"));
    throw error;
  }
}
