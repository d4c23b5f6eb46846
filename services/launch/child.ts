/** One process that the supervisor runs. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

export interface ProcessSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  /** All that it gets: nothing of the launcher's own environment comes along. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of the processes that must be ready before this one starts, and that stop after it. */
  readonly after: readonly string[];
  /** Where its stderr goes. */
  readonly log: string;
  /** Resolves once it can be used. Absent: it is ready with its first line on stdout. */
  readonly probe?: (signal: AbortSignal) => Promise<void>;
}

/** How a process ended; exactly one is given. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export const describeExit = ({ code, signal }: Exit): string =>
  signal === null ? `exit code ${code}` : `signal ${signal}`;

const TAIL_BYTES = 2_048;

export class Child {
  readonly exited: Promise<Exit>;
  readonly #spec: ProcessSpec;
  readonly #process: ChildProcess;
  readonly #firstLine: Promise<string>;

  constructor(spec: ProcessSpec) {
    const log = openSync(spec.log, "a", 0o600);
    this.#spec = spec;
    this.#process = spawn(spec.command, spec.args, {
      stdio: ["ignore", "pipe", log],
      env: spec.env,
      ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
      // A process group of its own: the terminal's Ctrl-C goes to the launcher, which stops all in order.
      detached: true,
    });
    closeSync(log);
    this.exited = exitOf(this.#process);
    this.#firstLine = firstLineOf(this.#process);
    this.#firstLine.catch(() => {});
  }

  /** `undefined` if it could not be started at all. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Resolves with what it said once it can be used. Races against `exited`, which says why it never will. */
  async ready(signal: AbortSignal): Promise<string> {
    const { probe } = this.#spec;
    if (!probe) return this.#firstLine;
    await probe(signal);
    return "";
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** The end of what it logged, for whoever has to say why it failed. */
  tail(): string {
    const text = readFileSync(this.#spec.log);
    return text.subarray(-TAIL_BYTES).toString("utf8").trimEnd();
  }
}

async function exitOf(child: ChildProcess): Promise<Exit> {
  try {
    const [code, signal] = await once(child, "exit");
    return { code, signal };
  } catch {
    return { code: 127, signal: null }; // as a shell says of a command that it cannot run
  }
}

/** Whatever follows is read and thrown away, so that the pipe never fills. */
function firstLineOf(child: ChildProcess): Promise<string> {
  const { stdout } = child;
  if (!stdout) return Promise.reject(new TypeError("the process has no stdout"));
  return new Promise((resolve) => {
    createInterface({ input: stdout }).on("line", resolve);
  });
}
