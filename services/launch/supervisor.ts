/**
 * Keeps a set of processes running together: started in order of need, restarted where that helps (lifecycles §8.4),
 * otherwise all stopped, so that there is never half a space that looks alive.
 */
import { LAUNCH } from "../../shared/limits.ts";
import { jitter, type Ports } from "../../shared/ports.ts";
import { Child, describeExit, type Exit, type ProcessSpec } from "./child.ts";
import type { Guard } from "./guard.ts";

export interface Happening {
  readonly process: string;
  readonly event: "starting" | "ready" | "exited" | "restarting" | "stopped" | "killed";
  readonly pid?: number | undefined;
  readonly exit?: string;
}

/** A process that cannot be had; `log` is the end of what it said. */
export class ProcessFailed extends Error {
  readonly process: string;
  readonly exit: Exit | "late";
  readonly log: string;

  constructor(name: string, exit: Exit | "late", why: string, log: string) {
    super(`${name} ${why}`);
    this.name = "ProcessFailed";
    this.process = name;
    this.exit = exit;
    this.log = log;
  }
}

/** What the exit codes of our processes mean to a person (lifecycles §8.4). */
const FINAL: Readonly<Record<number, string>> = {
  0: "was closed by somebody else",
  2: "refuses its inputs, secrets, settings or a stream's shape",
  3: "was superseded by another start of its slot",
};

interface Options {
  readonly specs: readonly ProcessSpec[];
  readonly guard: Guard;
  readonly ports: Pick<Ports, "monotonic" | "sleep" | "random" | "now">;
  readonly report: (happening: Happening) => void;
}

export class Supervisor {
  /** Resolves when a process ended for good: everything has been stopped by then. Pending otherwise. */
  readonly failed: Promise<ProcessFailed>;
  readonly #options: Options;
  readonly #children = new Map<string, Child>();
  readonly #lines = new Map<string, string>();
  readonly #stopping = new AbortController();
  #stopped: Promise<void> | undefined;
  #fail: (failure: ProcessFailed) => void = () => {};

  constructor(options: Options) {
    this.#options = options;
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
  }

  /** Resolves when all are ready. A process that ends or is late before that stops the rest, and rejects (`ProcessFailed`). */
  async start(): Promise<void> {
    const ready = new Map<string, Promise<void>>();
    for (const spec of this.#options.specs) {
      const needed = spec.after.map((name) => ready.get(name));
      ready.set(spec.name, this.#first(spec, needed));
    }
    try {
      await Promise.all(ready.values());
    } catch (error) {
      await this.stop();
      await Promise.allSettled(ready.values());
      throw error;
    }
  }

  /** Stops all, each after those that need it; repeatable. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stopAll();
    return this.#stopped;
  }

  /** Ends all at once, without order. */
  killAll(): void {
    for (const child of this.#children.values()) child.kill("SIGKILL");
  }

  pid(name: string): number | undefined {
    return this.#children.get(name)?.pid;
  }

  /** What a process said when it became ready. */
  said(name: string): string {
    return this.#lines.get(name) ?? "";
  }

  async #first(spec: ProcessSpec, needed: readonly (Promise<void> | undefined)[]): Promise<void> {
    await Promise.all(needed);
    const child = await this.#launch(spec);
    void this.#keep(spec, child);
  }

  /** One start of one process, until it is ready. */
  async #launch(spec: ProcessSpec): Promise<Child> {
    const { guard, ports, report } = this.#options;
    this.#stopping.signal.throwIfAborted();
    const child = new Child(spec);
    const { pid } = child;
    this.#children.set(spec.name, child);
    if (pid !== undefined) {
      guard.add(pid);
      void child.exited.then(() => guard.remove(pid));
    }
    report({ process: spec.name, event: "starting", pid });
    const settled = new AbortController();
    const signal = AbortSignal.any([settled.signal, this.#stopping.signal]);
    const late = ports.sleep(LAUNCH.readyMs, signal).then(
      () => "late" as const,
      () => new Promise<never>(() => {}),
    );
    const ready = child.ready(signal).then((line) => ({ line }));
    ready.catch(() => {}); // a probe that was given up
    const outcome = await Promise.race([ready, child.exited, late]).finally(() => settled.abort());
    if (outcome !== "late" && "line" in outcome) {
      this.#lines.set(spec.name, outcome.line);
      report({ process: spec.name, event: "ready", pid });
      return child;
    }
    if (outcome === "late") child.kill("SIGKILL");
    const why = outcome === "late" ? "did not become ready in time" : `ended before it was ready: ${reason(outcome)}`;
    throw new ProcessFailed(spec.name, outcome, why, child.tail());
  }

  /** Restarts a process for as long as that makes sense. */
  async #keep(spec: ProcessSpec, first: Child): Promise<void> {
    const { ports, report } = this.#options;
    const { signal } = this.#stopping;
    const ends: number[] = [];
    let child = first;
    let exit: Exit | "late" = await child.exited;
    while (!signal.aborted) {
      const text = exit === "late" ? "not ready in time" : describeExit(exit);
      report({ process: spec.name, event: "exited", exit: text });
      const now = ports.monotonic();
      ends.push(now);
      const recent = ends.filter((at) => at > now - LAUNCH.crashWindowMs).length;
      if (exit !== "late" && !worthRestarting(exit)) {
        return this.#giveUp(new ProcessFailed(spec.name, exit, reason(exit), child.tail()));
      }
      if (recent > LAUNCH.maxRestarts) {
        const why = `ended ${recent} times within ${LAUNCH.crashWindowMs / 1_000} s, last with ${text}`;
        return this.#giveUp(new ProcessFailed(spec.name, exit, why, child.tail()));
      }
      try {
        await ports.sleep(jitter(ports, LAUNCH.restart, recent - 1), signal);
        report({ process: spec.name, event: "restarting" });
        child = await this.#launch(spec);
        exit = await child.exited;
      } catch (error) {
        if (!(error instanceof ProcessFailed)) return; // stopping
        exit = error.exit;
      }
    }
  }

  async #giveUp(failure: ProcessFailed): Promise<void> {
    await this.stop();
    this.#fail(failure);
  }

  async #stopAll(): Promise<void> {
    this.#stopping.abort();
    const stopped = new Map<string, Promise<void>>();
    for (const spec of [...this.#options.specs].reverse()) {
      const users = this.#options.specs.filter(({ after }) => after.includes(spec.name));
      stopped.set(spec.name, this.#stopOne(spec.name, Promise.all(users.map(({ name }) => stopped.get(name)))));
    }
    await Promise.all(stopped.values());
  }

  async #stopOne(name: string, users: Promise<unknown>): Promise<void> {
    await users;
    const child = this.#children.get(name);
    if (child?.pid === undefined) return;
    const settled = new AbortController();
    child.kill("SIGTERM");
    void this.#options.ports.sleep(LAUNCH.stopMs, settled.signal).then(
      () => {
        child.kill("SIGKILL");
        this.#options.report({ process: name, event: "killed" });
      },
      () => {},
    );
    const exit = await child.exited;
    settled.abort();
    this.#options.report({ process: name, event: "stopped", exit: describeExit(exit) });
  }
}

/** 1 and 4 may pass, and so may whatever a signal ended; the other codes say that they will not. */
const worthRestarting = ({ code }: Exit): boolean => code === null || !Object.hasOwn(FINAL, code);

const reason = (exit: Exit): string =>
  (exit.code === null ? undefined : FINAL[exit.code]) ?? `ended with ${describeExit(exit)}`;
