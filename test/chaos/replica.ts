/** Replicas of `auth` in processes of their own. None outlives the test. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { TestSpace } from "../kit/space.ts";
import type { Task } from "./auth.ts";

const ENTRY = fileURLToPath(new URL("./auth.ts", import.meta.url));

export type Ends = Pick<Task, "dies" | "pausesBefore">;

const RESCAN_SOON_MS = 200;

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export class Replica {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  #seen: (() => void)[] = [];

  private constructor(child: ChildProcess) {
    this.#child = child;
    running.add(child);
    this.#exited = once(child, "exit").then(() => running.delete(child));
    const log = child.stdout && createInterface({ input: child.stdout });
    log?.on("line", (line) => {
      this.lines.push(line);
      for (const wake of this.#seen.splice(0)) wake();
    });
    void this.#exited.then(() => {
      for (const wake of this.#seen.splice(0)) wake();
    });
  }

  /** Does not wait for it to serve. */
  static spawn({ stateDir, space, servers }: TestSpace, instance: string, ends: Ends = {}): Replica {
    const task: Task = { stateDir, space, servers, instance, rescanMs: RESCAN_SOON_MS, ...ends };
    const child = spawn(process.execPath, ["--import", "tsx", ENTRY, JSON.stringify(task)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    return new Replica(child);
  }

  static async serving(space: TestSpace, instance: string, ends: Ends = {}): Promise<Replica> {
    const replica = Replica.spawn(space, instance, ends);
    await replica.says('"msg":"serving"');
    return replica;
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
    if (!this.alive) return;
    this.#child.kill("SIGTERM");
    await this.#exited;
  }
}
