/** The launcher as a user starts it, read line by line. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Line {
  readonly event: string;
  readonly [member: string]: unknown;
}

export interface Launched {
  readonly lines: Line[];
  readonly exit: Promise<number | null>;
  problems(): string;
  /** Resolves with the first line that fits, past or future; rejects if it ends without one. */
  line(fits: (line: Line) => boolean): Promise<Line>;
  kill(signal: NodeJS.Signals): void;
  /** Every process that it said it started. */
  pids(): number[];
}

const children = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of children) child.kill("SIGTERM");
});

/** `npm start` */
export const npmStart = (...args: string[]): Launched => launched("npm", "start", "--silent", "--", "--json", ...args);

/** What `npm start` runs, without npm between it and our signals. */
export const start = (...args: string[]): Launched =>
  launched(process.execPath, "services/launch/start.mjs", "--json", ...args);

function launched(command: string, ...args: string[]): Launched {
  const child = spawn(command, args, { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  const lines: Line[] = [];
  const waiting = new Set<() => void>();
  const look = (): void => {
    for (const one of waiting) one();
  };
  createInterface({ input: child.stdout }).on("line", (text) => {
    if (text.startsWith("{")) lines.push(JSON.parse(text));
    look();
  });
  let problems = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    problems += text;
  });
  let ended = false;
  const exit = once(child, "close").then(([code]) => {
    children.delete(child);
    ended = true;
    look();
    return code as number | null;
  });
  return {
    lines,
    exit,
    problems: () => problems,
    line: (fits) =>
      new Promise((resolve, reject) => {
        const one = (): void => {
          const found = lines.find(fits);
          if (!found && !ended) return;
          waiting.delete(one);
          if (found) resolve(found);
          else
            reject(new Error(`it ended first:\n${problems}\n${lines.map((line) => JSON.stringify(line)).join("\n")}`));
        };
        waiting.add(one);
        one();
      }),
    kill: (signal) => void child.kill(signal),
    pids: () => lines.flatMap(({ event, pid }) => (event === "process" && typeof pid === "number" ? [pid] : [])),
  };
}
