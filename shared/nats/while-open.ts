/** Waiting for an answer no longer than the connection lives: a closed one forgets who waits for what. */
import type { NatsConnection } from "@nats-io/nats-core";

/** One per connection, as what is attached to its end stays attached. */
const waiting = new WeakMap<NatsConnection, Set<() => void>>();

function waitersOf(connection: NatsConnection): Set<() => void> {
  const known = waiting.get(connection);
  if (known) return known;
  const waiters = new Set<() => void>();
  waiting.set(connection, waiters);
  void connection.closed().then(() => {
    for (const giveUp of waiters) giveUp();
  });
  return waiters;
}

/** As `request`, but rejects once the connection is closed. */
export async function whileOpen<T>(connection: NatsConnection, request: () => Promise<T>): Promise<T> {
  const waiters = waitersOf(connection);
  let giveUp = (): void => {};
  const closed = new Promise<never>((_, reject) => {
    giveUp = () => reject(new Error("the connection was closed meanwhile"));
  });
  waiters.add(giveUp);
  try {
    return await Promise.race([request(), closed]);
  } finally {
    waiters.delete(giveUp);
  }
}
