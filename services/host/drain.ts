/** Ends a micro-service: nothing new, then what is at work, then what is still to be sent (wire §9, Stop). */
import type { NatsConnection } from "@nats-io/nats-core";
import type { Service } from "@nats-io/services";
import type { Logger } from "pino";
import { textOf } from "../../shared/errors.ts";
import { CONNECTION, STOP } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";

export interface Draining {
  readonly framework: Pick<Service, "stop">;
  readonly connection: NatsConnection;
  /** Requests at work. */
  readonly running: ReadonlySet<Promise<void>>;
  /** Aborted once the work has had its time. */
  readonly stopping: AbortController;
  readonly ports: Ports;
  readonly log: Logger;
}

/** Never rejects, and ends without a broker as well: nobody waits for an answer then. */
export async function drainService(draining: Draining): Promise<void> {
  const { framework, connection, running, stopping, ports } = draining;
  await withBroker(draining, () => framework.stop());
  const limit = new AbortController();
  const cut = ports.sleep(STOP.drainMs, limit.signal).then(
    () => stopping.abort(),
    () => {},
  );
  await Promise.race([Promise.allSettled(running), cut.then(() => Promise.allSettled(running))]);
  limit.abort();
  await withBroker(draining, () => connection.flush());
}

/** The library waits for the broker's word for ever, or for nothing once the connection is closed. */
async function withBroker({ connection, ports, log }: Draining, step: () => Promise<unknown>): Promise<void> {
  if (connection.isClosed()) return;
  const stop = new AbortController();
  const late = ports.sleep(CONNECTION.drainMs, stop.signal).catch(() => {});
  await Promise.race([step(), connection.closed(), late]).catch((error: unknown) => {
    log.warn({ err: textOf(error) }, "drained without the broker");
  });
  stop.abort();
}
