/** Callouts in processes of their own, as a test may kill them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { TestSpace } from "./space.ts";

export interface Replica {
  /** How many it has admitted so far. */
  admitted(): number;
  /** SIGKILL. */
  kill(): Promise<void>;
}

const SCRIPT = fileURLToPath(new URL("replica.ts", import.meta.url));
const children = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

/** Resolves once it serves. */
export async function startReplica({ stateDir, broker }: TestSpace): Promise<Replica> {
  const args = ["--import", "tsx", SCRIPT, stateDir, broker.url];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.add(child);
  child.once("exit", () => children.delete(child));
  let admitted = 0;
  const output = createInterface({ input: child.stdout });
  await new Promise<void>((resolve, reject) => {
    output.on("line", (line) => {
      if (line.includes('"msg":"serving"')) resolve();
      if (line.includes('"decision":"admitted"')) admitted += 1;
    });
    child.once("exit", () => reject(new Error("the replica ended")));
  });
  return {
    admitted: () => admitted,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
