/** Requests to the servers over the system account. Whatever goes wrong with one is an answer that did not come. */
import type { NatsConnection } from "@nats-io/nats-core";
import type { CUSTODIAN } from "../../shared/limits.ts";
import { newNonce, type Ports } from "../../shared/ports.ts";
import type { ServerNkey } from "../../shared/tokens.ts";

export type CustodianLimits = { readonly [K in keyof typeof CUSTODIAN]: number };

export interface SystemOptions {
  readonly connection: NatsConnection;
  /** What this user may subscribe under: `_INBOX_<nkey>`. */
  readonly inboxPrefix: string;
  readonly ports: Ports;
  readonly limits: CustodianLimits;
}

export class SystemAccount {
  readonly #connection: NatsConnection;
  readonly #inboxPrefix: string;
  readonly #ports: Ports;
  readonly limits: CustodianLimits;

  constructor({ connection, inboxPrefix, ports, limits }: SystemOptions) {
    this.#connection = connection;
    this.#inboxPrefix = inboxPrefix;
    this.#ports = ports;
    this.limits = limits;
  }

  /** Every server's reply, collected until none came for a while (lifecycles §2.1). At most one over `maxServers`. */
  async ping(what: "STATSZ" | "VARZ"): Promise<Uint8Array[]> {
    const { discoverMinMs, discoverMaxMs, discoverQuietMs, maxServers } = this.limits;
    const began = this.#ports.monotonic();
    const replies: Uint8Array[] = [];
    let last = began;
    const inbox = this.#inbox();
    try {
      const subscription = this.#connection.subscribe(inbox, {
        callback: (error, message) => {
          if (error || message.headers?.hasError || replies.length > maxServers) return;
          replies.push(message.data);
          last = this.#ports.monotonic();
        },
      });
      try {
        this.#connection.publish(`$SYS.REQ.SERVER.PING.${what}`, undefined, { reply: inbox });
        for (;;) {
          const until = Math.min(began + discoverMaxMs, Math.max(began + discoverMinMs, last + discoverQuietMs));
          const left = until - this.#ports.monotonic();
          if (left <= 0) return replies;
          await this.#ports.sleep(Math.ceil(left));
        }
      } finally {
        subscription.unsubscribe();
      }
    } catch {
      return replies; // the connection is gone: nobody is heard
    }
  }

  /** One server's answer, or `undefined` after `ms`. */
  async ask(server: ServerNkey, what: "CONNZ" | "KICK", body: object, ms: number): Promise<Uint8Array | undefined> {
    try {
      const options = { timeout: ms, noMux: true, reply: this.#inbox() };
      const reply = await this.#connection.request(`$SYS.REQ.SERVER.${server}.${what}`, JSON.stringify(body), options);
      return reply.data;
    } catch {
      return undefined;
    }
  }

  /** Fresh, 128 random bits: a late reply to another question is never taken for this one's. */
  #inbox(): string {
    return `${this.#inboxPrefix}.${newNonce(this.#ports)}`;
  }
}
