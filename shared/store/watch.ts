/** Tells when rows may have changed: a hint to look, never what is decided on (state §2). */
import type { NatsConnection } from "@nats-io/nats-core";
import { PEER_WAIT, STORE } from "../limits.ts";
import { jitter, newUid, type Ports } from "../ports.ts";
import { consumerConfig, createConsumer, deleteConsumer, positionOf, pull } from "./consumer.ts";

/** `key` changed, or anything may have: after a start, a gap, a reconnect. */
export type Hint = { readonly kind: "changed"; readonly subject: string } | { readonly kind: "rescan" };

/** Calls `hint` until the signal aborts or the connection closes; resolves then, and never rejects. */
export async function watchSubjects(
  connection: NatsConnection,
  stream: string,
  filter: string,
  ports: Ports,
  signal: AbortSignal,
  hint: (hint: Hint) => void,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted && !connection.isClosed()) {
    const name = `watch-${newUid(ports).slice(0, 26)}`;
    // Deleting the consumer ends the pull that waits on it.
    const end = () => void deleteConsumer(connection, stream, name);
    signal.addEventListener("abort", end, { once: true });
    try {
      await createConsumer(connection, stream, consumerConfig(name, filter, "new"));
      hint({ kind: "rescan" });
      failures = 0;
      await follow(connection, stream, name, signal, hint);
    } catch {
      failures += 1;
      if (!signal.aborted) await ports.sleep(jitter(ports, PEER_WAIT, failures - 1), signal).catch(() => undefined);
    } finally {
      signal.removeEventListener("abort", end);
      if (!connection.isClosed()) await deleteConsumer(connection, stream, name);
    }
  }
}

/** Follows until the signal aborts; throws when the consumer or the connection is lost. */
async function follow(
  connection: NatsConnection,
  stream: string,
  name: string,
  signal: AbortSignal,
  hint: (hint: Hint) => void,
): Promise<void> {
  const request = { batch: STORE.scanBatch, expires: STORE.watchPullMs * 1_000_000 };
  let before = 0;
  while (!signal.aborted) {
    for await (const message of pull(connection, stream, name, request, STORE.watchPullMs + STORE.readTimeoutMs)) {
      const { delivered } = positionOf(message);
      if (delivered !== before + 1) hint({ kind: "rescan" });
      before = delivered;
      hint({ kind: "changed", subject: message.subject });
    }
  }
}
