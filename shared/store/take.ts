/** Consumes an observed run request: deleting its message, which succeeds exactly once (state §2, Observation). */
import type { NatsConnection } from "@nats-io/nats-core";
import { isAuthorityError } from "../errors.ts";
import { STORE, WIRE } from "../limits.ts";
import type { Ports } from "../ports.ts";
import { timeLeft, type Work } from "../work.ts";
import { askApi } from "./api.ts";
import { getMessage, type RawMessage } from "./read.ts";

/** A request that the broker saw, taken by whoever holds this value and by nobody else. */
export interface Observation {
  readonly subject: string;
  readonly body: Uint8Array;
  /** Unix milliseconds. */
  readonly at: number;
}

/** `undefined`: not observed, which a timeout is too. */
export async function takeObservation(
  connection: NatsConnection,
  stream: string,
  subject: string,
  ports: Ports,
  work: Work,
): Promise<Observation | undefined> {
  const message = await seen(connection, stream, subject, ports, work);
  if (!message || !isObservation(message, subject, ports.now())) return undefined;
  const taken = await askApi<{ readonly success?: boolean }>(
    connection,
    `STREAM.MSG.DELETE.${stream}`,
    { seq: message.revision, no_erase: true },
    Math.min(STORE.readTimeoutMs, timeLeft(work, ports)),
  ).catch(unlessUnavailable);
  return taken?.success === true ? { subject, body: message.body, at: message.at } : undefined;
}

/** Reads until the capture has caught up with the delivery, at most two seconds. */
async function seen(
  connection: NatsConnection,
  stream: string,
  subject: string,
  ports: Ports,
  work: Work,
): Promise<RawMessage | undefined> {
  const end = ports.monotonic() + Math.min(STORE.takeWaitMs, timeLeft(work, ports));
  for (;;) {
    const left = Math.min(STORE.readTimeoutMs, timeLeft(work, ports));
    const message = await getMessage(connection, stream, { last_by_subj: subject }, left).catch(unlessUnavailable);
    if (message) return message;
    if (ports.monotonic() + STORE.takePollMs >= end || work.signal?.aborted) return undefined;
    await ports.sleep(STORE.takePollMs, work.signal).catch(() => undefined);
  }
}

/** A broker's answer aimed at the subject has headers; a caller's request has none (pitfalls 10). */
function isObservation(message: RawMessage, subject: string, now: number): boolean {
  return (
    message.subject === subject &&
    message.headers.size === 0 &&
    message.body.length > 0 &&
    message.body.length <= WIRE.maxObservedBody &&
    now - message.at <= STORE.takeMaxAgeMs
  );
}

function unlessUnavailable(error: unknown): undefined {
  if (isAuthorityError(error, "unavailable")) return undefined;
  throw error;
}
