/**
 * Requests over one inbox of a connection, as the library's own `request` makes them. That one makes an error, with its
 * stack, for every answer that came in time; a read of a row takes four fifths of the time without it.
 */
import { randomUUID } from "node:crypto";
import {
  createInbox,
  errors,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type PublishOptions,
  type Subscription,
} from "@nats-io/nats-core";
import type { NatsConnectionImpl } from "@nats-io/nats-core/internal";

export interface RequestOptions {
  readonly timeoutMs: number;
  readonly headers?: MsgHdrs;
  /** Where this connection may receive; its own setting, if not given. */
  readonly inboxPrefix?: string;
}

/**
 * The first answer. Rejects with the library's errors: `TimeoutError`, `NoRespondersError`, `PermissionViolationError`;
 * `ClosedConnectionError`, `DrainingConnectionError`, `InvalidArgumentError` and `InvalidSubjectError` where it was never
 * sent; `RequestError` where the connection ended meanwhile.
 */
export function request(
  connection: NatsConnection,
  subject: string,
  data: Uint8Array | string,
  options: RequestOptions,
): Promise<Msg> {
  const prefix = options.inboxPrefix ?? (connection as NatsConnectionImpl).options.inboxPrefix ?? "_INBOX";
  const known = requestsOf.get(connection) ?? new Map<string, Requests>();
  requestsOf.set(connection, known);
  const requests = known.get(prefix) ?? new Requests(connection, createInbox(prefix));
  known.set(prefix, requests);
  return requests.ask(subject, data, options);
}

/** By connection and inbox prefix. */
const requestsOf = new WeakMap<NatsConnection, Map<string, Requests>>();

interface Pending {
  readonly subject: string;
  settle(outcome: Msg | Error): void;
}

class Requests {
  readonly #connection: NatsConnection;
  readonly #inbox: string;
  #answers: Subscription | undefined;
  /** By the last token of the reply subject, oldest first. */
  readonly #pending = new Map<string, Pending>();

  constructor(connection: NatsConnection, inbox: string) {
    this.#connection = connection;
    this.#inbox = inbox;
    void connection.closed().then(() => this.#refuseAll(new errors.RequestError("connection closed")));
    if (!connection.isClosed()) void this.#hearRefusals();
  }

  ask(subject: string, data: Uint8Array | string, { timeoutMs, headers }: RequestOptions): Promise<Msg> {
    return new Promise((resolve, reject) => {
      const token = randomUUID();
      const settle = (outcome: Msg | Error): void => {
        clearTimeout(late);
        this.#pending.delete(token);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      };
      const late = setTimeout(() => settle(new errors.TimeoutError()), timeoutMs);
      this.#pending.set(token, { subject, settle });
      const options: PublishOptions = { reply: `${this.#inbox}.${token}`, ...(headers ? { headers } : {}) };
      try {
        // It would still be sent, and nobody would hear its answer.
        if (this.#connection.isDraining() && !this.#connection.isClosed()) throw new errors.DrainingConnectionError();
        this.#listen();
        this.#connection.publish(subject, data, options);
      } catch (error) {
        settle(error instanceof Error ? error : new errors.RequestError(String(error)));
      }
    });
  }

  /** The library subscribes again after a reconnect; a drain or a refusal by the broker ends it. */
  #listen(): void {
    if (this.#answers && !this.#answers.isClosed()) return;
    this.#answers = this.#connection.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        // What is thrown here would end the reader of the connection.
        if (error) return;
        const pending = this.#pending.get(message.subject.slice(this.#inbox.length + 1));
        pending?.settle(isNoResponders(message) ? new errors.NoRespondersError(pending.subject) : message);
      },
    });
  }

  /** Refusals of the broker come beside the answers: of what was published, and of the subscription. */
  async #hearRefusals(): Promise<void> {
    for await (const status of this.#connection.status()) {
      if (status.type !== "error" || !(status.error instanceof errors.PermissionViolationError)) continue;
      const refused = status.error;
      if (refused.operation === "publish") {
        [...this.#pending.values()].find(({ subject }) => subject === refused.subject)?.settle(refused);
      } else if (refused.subject === `${this.#inbox}.*`) {
        this.#refuseAll(refused);
      }
    }
  }

  #refuseAll(error: Error): void {
    for (const { settle } of [...this.#pending.values()]) settle(error);
  }
}

/** The broker's own word; headers that cannot be read are somebody else's. */
function isNoResponders(message: Msg): boolean {
  if (message.data.length > 0) return false;
  try {
    return message.headers?.code === 503;
  } catch {
    return false;
  }
}
