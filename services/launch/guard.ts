/** The launcher's end of `guard.mjs`: which processes must not outlive the launcher. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface Guard {
  add(pid: number): void;
  remove(pid: number): void;
  /** Ends the guard itself; what it still holds is ended with it. */
  end(): Promise<void>;
}

export function startGuard(): Guard {
  const child = spawn(process.execPath, [fileURLToPath(new URL("guard.mjs", import.meta.url))], {
    stdio: ["pipe", "ignore", "ignore"],
    // Away from the terminal, whose Ctrl-C is for the launcher alone.
    detached: true,
    env: {},
  });
  const ended = once(child, "exit");
  child.stdin.on("error", () => {}); // a guard that was killed guards nothing, and stops nobody
  const tell = (line: string): void => {
    if (child.stdin.writable) child.stdin.write(`${line}\n`);
  };
  return {
    add: (pid) => tell(`+${pid}`),
    remove: (pid) => tell(`-${pid}`),
    async end() {
      child.stdin.end();
      await ended;
    },
  };
}
