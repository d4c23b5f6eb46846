/** Whether a process serves, since when, and why not (lifecycles §8.2). */
import { HOST } from "../shared/limits.ts";
import type { Ports } from "../shared/ports.ts";

export interface Readiness {
  readonly state: "starting" | "ready" | "draining" | "unavailable";
  /** Unix ms. */
  readonly since: number;
  readonly reason?: string;
}

/** Anything that can say whether it serves. */
interface Part {
  readonly name: string;
  ready(): boolean;
}

export class ReadinessWatch {
  readonly #ports: Ports;
  readonly #changed: (readiness: Readiness) => void;
  #current: Readiness;
  /** Draining and what ended the process: nothing leads back. */
  #final = false;

  constructor(ports: Ports, changed: (readiness: Readiness) => void) {
    this.#ports = ports;
    this.#changed = changed;
    this.#current = { state: "starting", since: ports.now() };
  }

  get current(): Readiness {
    return this.#current;
  }

  /** Looks at all parts now, and again and again until the signal aborts. */
  follow(parts: readonly Part[], signal: AbortSignal): void {
    this.#look(parts);
    void this.#watch(parts, signal);
  }

  settle(state: "draining" | "unavailable", reason?: string): void {
    this.#set(state, reason);
    this.#final = true;
  }

  async #watch(parts: readonly Part[], signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#ports.sleep(HOST.lookMs, signal).catch(() => {});
      this.#look(parts);
    }
  }

  #look(parts: readonly Part[]): void {
    const unready = parts.filter((part) => !part.ready()).map(({ name }) => name);
    if (unready.length === 0) this.#set("ready");
    else this.#set("unavailable", `${unready.join(", ")} cannot answer`);
  }

  #set(state: Readiness["state"], reason?: string): void {
    if (this.#final || (this.#current.state === state && this.#current.reason === reason)) return;
    this.#current = { state, since: this.#ports.now(), ...(reason === undefined ? {} : { reason }) };
    this.#changed(this.#current);
  }
}
