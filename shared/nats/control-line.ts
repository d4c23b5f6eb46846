/**
 * Whether a broker takes lines as long as the authority's (lifecycles §8.1). It tells nobody outside the system account
 * how long that is, so it is tried: with a line of that length, which at its default of 4 KB it refuses.
 */
import type { NatsConnection } from "@nats-io/transport-node";
import { AuthorityError, textOf, unavailable } from "../errors.ts";
import { CONNECTION } from "../limits.ts";

/** Of the line, what follows the subject: two spaces and the number of the subscription. */
const AFTER_SUBJECT = 16;

/**
 * Subscribes for a moment to a long subject under the connection's own inbox, which nobody publishes to. Rejects with
 * `failed-precondition` where the broker refuses the line, `unavailable` where the connection is lost meanwhile. The
 * connection is of no further use then.
 */
export async function proveControlLine(connection: NatsConnection, inboxPrefix: string): Promise<void> {
  const lost = refusalOf(connection);
  const prefix = `${inboxPrefix}.`;
  const subject = prefix.padEnd(CONNECTION.controlLine - AFTER_SUBJECT, "x");
  const subscription = connection.subscribe(subject, { callback: () => {} });
  const answered = connection.flush().then(
    () => undefined,
    // A loss rejects this as well; why is told by the status.
    () => lost,
  );
  const refusal = await Promise.race([answered, lost]);
  if (refusal) throw refusal;
  subscription.unsubscribe();
}

/** What the connection's end would mean; stays open while the connection does. */
async function refusalOf(connection: NatsConnection): Promise<AuthorityError> {
  for await (const status of connection.status()) {
    if (status.type === "disconnect") break;
    if (status.type !== "error" || !/maximum control line/i.test(textOf(status.error))) continue;
    const reason = `the broker's max_control_line is below ${CONNECTION.controlLine}: set it as nats-server.conf does`;
    return new AuthorityError("failed-precondition", "the broker is not as it must be", { reason });
  }
  return unavailable("the connection was lost at once");
}
