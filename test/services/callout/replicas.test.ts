import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Crowd, crowdOf } from "./crowd.ts";
import { startSpace, type TestSpace } from "./space.ts";

let at: TestSpace;
let crowd: Crowd;
beforeAll(async () => {
  at = await startSpace();
  crowd = await crowdOf(at);
});
const children = new Set<ChildProcess>();
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await at.stop();
});

test("two replicas share the load; with one killed the other admits everybody", async () => {
  const [one, other] = await Promise.all([startReplica(), startReplica()]);
  expect(await crowd.connect(60, 10)).toEqual([]);
  expect(one.admitted()).toBeGreaterThan(0);
  expect(other.admitted()).toBeGreaterThan(0);
  await one.kill();
  // A request that reached the dead one would end in an authorization timeout.
  expect(await crowd.connect(60, 10)).toEqual([]);
  await other.kill();
});

interface Replica {
  admitted(): number;
  kill(): Promise<void>;
}

async function startReplica(): Promise<Replica> {
  const script = fileURLToPath(new URL("replica.ts", import.meta.url));
  const args = ["--import", "tsx", script, at.stateDir, at.broker.url];
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.add(child);
  if (!child.stdout) throw new Error("no output");
  let admitted = 0;
  const output = createInterface({ input: child.stdout });
  const serving = new Promise<void>((resolve, reject) => {
    output.on("line", (line) => {
      if (line.includes('"msg":"serving"')) resolve();
      if (line.includes('"decision":"admitted"')) admitted += 1;
    });
    child.once("exit", () => reject(new Error("the replica ended")));
  });
  await serving;
  return {
    admitted: () => admitted,
    async kill() {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
