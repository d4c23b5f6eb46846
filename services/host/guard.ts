/** Watches what deciding rests on: the connections, and the shape of every stream that is used (state §1). */
import type { NatsConnection } from "@nats-io/nats-core";
import type { Logger } from "pino";
import { isAuthorityError, reasonOf } from "../../shared/errors.ts";
import { GUARD_MS, RESCAN_MS, STOP } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";
import type { EndReason } from "../service.ts";

/** A connection as far as it is watched. */
export interface Watched {
  readonly connected: boolean;
  /** Rises with each connect. */
  readonly connects: number;
}

/** Watches a connection that is never replaced. */
export function watched(connection: NatsConnection): Watched {
  const state = { connected: true, connects: 1 };
  const follow = async (): Promise<void> => {
    for await (const { type } of connection.status()) {
      if (type === "disconnect") state.connected = false;
      if (type !== "reconnect") continue;
      state.connected = true;
      state.connects += 1;
    }
    state.connected = false;
  };
  void follow();
  return state;
}

export interface GuardOptions {
  readonly connections: readonly Watched[];
  /** `failed-precondition` on drift, `unavailable` where nothing can be said. */
  prove(): Promise<void>;
  readonly ports: Ports;
  readonly log: Logger;
  /** Ends the watch. */
  readonly signal: AbortSignal;
}

/** Proven at the start; from then on every 30 s and after every reconnect. */
export class Guard {
  readonly #options: GuardOptions;
  #proven = true;
  /** Settles with the reason for which the process must end; never if the watch was ended. */
  readonly ended: Promise<EndReason>;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.ended = new Promise((resolve) => void this.#watch(resolve));
  }

  /** Whether reads reach a broker whose streams are as they must be. */
  get sound(): boolean {
    return this.#proven && this.#connected();
  }

  #connected(): boolean {
    return this.#options.connections.every(({ connected }) => connected);
  }

  #connects(): number {
    return this.#options.connections.reduce((sum, { connects }) => sum + connects, 0);
  }

  async #watch(end: (reason: EndReason) => void): Promise<void> {
    const { ports, log, signal } = this.#options;
    let lostAt: number | undefined;
    let provenAt = ports.monotonic();
    let seen = this.#connects();
    for (;;) {
      await ports.sleep(GUARD_MS, signal).catch(() => {});
      if (signal.aborted) return;
      const now = ports.monotonic();
      if (!this.#connected()) {
        lostAt ??= now;
        if (now - lostAt < STOP.brokerLostMs) continue;
        log.error("the broker is lost");
        return end("broker-lost");
      }
      lostAt = undefined;
      if (this.#proven && seen === this.#connects() && now - provenAt < RESCAN_MS) continue;
      seen = this.#connects();
      try {
        await this.#options.prove();
        this.#proven = true;
        provenAt = now;
      } catch (error) {
        this.#proven = false;
        log.error({ err: reasonOf(error) }, "the streams are not proven");
        if (isAuthorityError(error, "failed-precondition")) return end("drift");
      }
    }
  }
}
