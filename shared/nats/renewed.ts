/**
 * A connection under a user that expires: the next one is open before the broker ends this one, so nobody waits.
 *
 * ```ts
 * const connection = await RenewedConnection.open({ owned, label: "store:callout", user, everyMs, lingerMs, ports, log });
 * const store = new Store({ space, ports, connections: { authority: () => connection.current() } });
 * ```
 */
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { reasonOf } from "../errors.ts";
import { PEER_WAIT } from "../limits.ts";
import { jitter, type Ports } from "../ports.ts";
import type { User } from "./connect.ts";
import type { ConnectionLabel, OwnedConnections } from "./owned.ts";

export interface RenewedOptions {
  readonly owned: OwnedConnections;
  readonly label: ConnectionLabel;
  /** Signs anew when it is due. */
  readonly user: () => User;
  /** ms until the next connection takes over. */
  readonly everyMs: number;
  /** ms that the former one stays, for what is in flight on it. */
  readonly lingerMs: number;
  readonly ports: Ports;
  readonly log: Logger;
  /** Ends the renewals; whoever owns the connections closes them. */
  readonly signal: AbortSignal;
}

export class RenewedConnection {
  readonly #options: RenewedOptions;
  #current: NatsConnection;
  #connected = true;
  #connects = 1;

  private constructor(options: RenewedOptions, connection: NatsConnection) {
    this.#options = options;
    this.#current = connection;
    void this.#follow(connection);
    void this.#renew();
  }

  static async open(options: RenewedOptions): Promise<RenewedConnection> {
    return new RenewedConnection(options, await connect(options));
  }

  /** The one to use now; not to be kept. */
  current(): NatsConnection {
    return this.#current;
  }

  /** Whether it has a broker at this moment. */
  get connected(): boolean {
    return this.#connected && !this.#current.isClosed();
  }

  /** How often it was connected, the first time included: what was proven of a broker is to be proven again. */
  get connects(): number {
    return this.#connects;
  }

  async #renew(): Promise<void> {
    const { everyMs, lingerMs, ports, log, label, signal } = this.#options;
    let wait = everyMs;
    for (let attempt = 0; ; ) {
      await ports.sleep(wait, signal).catch(() => {});
      if (signal.aborted) return;
      try {
        const former = this.#current;
        const next = await connect(this.#options);
        if (signal.aborted) return void next.close(); // begun before the end, and on nobody's list
        this.#current = next;
        this.#connected = true;
        this.#connects += 1;
        void this.#follow(this.#current);
        void this.#retire(former, lingerMs);
        [wait, attempt] = [everyMs, 0];
        log.debug({ connection: label }, "connection renewed");
      } catch (error) {
        if (signal.aborted) return;
        // The former connection goes on until its user expires, and reconnects under a new one.
        log.warn({ connection: label, err: reasonOf(error) }, "connection not renewed");
        wait = jitter(ports, PEER_WAIT, attempt);
        attempt += 1;
      }
    }
  }

  async #retire(former: NatsConnection, lingerMs: number): Promise<void> {
    const { ports, signal } = this.#options;
    await ports.sleep(lingerMs, signal).catch(() => {});
    await former.close();
  }

  async #follow(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
      if (connection !== this.#current) return;
      if (type === "disconnect") this.#connected = false;
      if (type !== "reconnect") continue;
      this.#connected = true;
      this.#connects += 1;
    }
  }
}

const connect = ({ owned, label, user, log }: RenewedOptions): Promise<NatsConnection> =>
  owned.open(label, { name: label, user, reconnect: true, log });
