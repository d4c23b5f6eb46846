/** Replicas of `auth` in processes of their own. None outlives the test. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { TestSpace } from "../kit/space.ts";
import type { Ends, Task } from "./auth.ts";

const ENTRY = fileURLToPath(new URL("./auth.ts", import.meta.url));

const RESCAN_SOON_MS = 200;

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Those of one space, and a further process that has loaded everything and waits for its task. */
export class Replicas {
  readonly #space: TestSpace;
  readonly #all: Replica[] = [];
  #spare: ChildProcess | undefined;
  /** Processes that ended by SIGKILL before they were asked to stop. */
  killed = 0;

  constructor(space: TestSpace) {
    this.#space = space;
    this.#spare = load();
  }

  /** Does not wait for it to serve. */
  start(instance: string, ends: Ends = {}): Replica {
    const { stateDir, space, servers } = this.#space;
    const child = this.#spare ?? load();
    this.#spare = load();
    const task: Task = { stateDir, space, servers, instance, rescanMs: RESCAN_SOON_MS, ...ends };
    const replica = new Replica(child, () => {
      this.killed += 1;
    });
    child.send(task);
    this.#all.push(replica);
    return replica;
  }

  /** Resolves once it serves. */
  async serving(instance: string, ends: Ends = {}): Promise<Replica> {
    const replica = this.start(instance, ends);
    await replica.says('"msg":"serving"');
    return replica;
  }

  async stop(): Promise<void> {
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare) {
      spare.kill("SIGKILL");
      await once(spare, "exit");
      running.delete(spare);
    }
    await Promise.all(this.#all.map((replica) => replica.end()));
  }
}

function load(): ChildProcess {
  const child = spawn(process.execPath, ["--import", "tsx", ENTRY], { stdio: ["ignore", "pipe", "inherit", "ipc"] });
  running.add(child);
  return child;
}

export class Replica {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  #ending = false;
  #seen: (() => void)[] = [];

  constructor(child: ChildProcess, killed: () => void) {
    this.#child = child;
    const wake = () => {
      for (const seen of this.#seen.splice(0)) seen();
    };
    this.#exited = once(child, "exit").then(() => {
      running.delete(child);
      if (child.signalCode === "SIGKILL" && !this.#ending) killed();
      wake();
    });
    const log = child.stdout && createInterface({ input: child.stdout });
    log?.on("line", (line) => {
      this.lines.push(line);
      wake();
    });
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves once a log line contains the text; rejects where the process ends before. */
  async says(text: string): Promise<void> {
    while (!this.lines.some((line) => line.includes(text))) {
      if (!this.alive)
        throw new Error(`the replica ended before it said ${text}:\n${this.lines.slice(-20).join("\n")}`);
      await new Promise<void>((resolve) => this.#seen.push(resolve));
    }
  }

  /** How it is to end from here on, in place of what was said before. */
  async arm(ends: Ends): Promise<void> {
    const armed = once(this.#child, "message");
    this.#child.send(ends);
    await armed;
  }

  /** Resolves once it has killed itself. */
  async died(): Promise<void> {
    await this.#exited;
    if (this.#child.signalCode !== "SIGKILL") throw new Error(`the replica ended by ${this.#child.signalCode}`);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  /** Resolves once it has stopped itself. */
  async stopped(): Promise<void> {
    for (;;) {
      const stat = await readFile(`/proc/${this.#child.pid}/stat`, "latin1");
      if (/^.*\) T/s.test(stat)) return;
      await delay(5);
    }
  }

  goOn(): void {
    this.#child.kill("SIGCONT");
  }

  /** As a supervisor stops it. */
  async stop(): Promise<void> {
    this.#ending = true;
    if (!this.alive) return;
    this.#child.kill("SIGTERM");
    await this.#exited;
  }

  /** Whatever it is doing; counts as no kill. */
  async end(): Promise<void> {
    this.#ending = true;
    await this.kill();
  }
}
