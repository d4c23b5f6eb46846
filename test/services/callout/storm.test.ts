import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startCallout } from "../../../services/callout/start.ts";
import { runCloseSteps } from "../../../shared/nats/owned.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { freshNonce, grant, type Identity, install } from "./people.ts";
import { startSpace, type TestSpace } from "./space.ts";

const ports = systemPorts;
let at: TestSpace;
let people: Identity[];

beforeAll(async () => {
  at = await startSpace();
  const names = Array.from({ length: 20 }, () => grant({ actor: `cli_${newUid(ports)}` }));
  people = await Promise.all(names.map((who) => install(at, who)));
});
afterAll(() => at.stop());

/** Bearers of these people in turn. */
async function tokens(count: number): Promise<string[]> {
  const held = await Promise.all(people.map((who) => at.bearers.bearer(who)));
  return Array.from({ length: count }, (_, index) => held[index % held.length] ?? "");
}

/** Connects all, so many at a time; errors are collected. */
async function connectAll(bearers: readonly string[], atOnce: number): Promise<{ errors: unknown[]; ms: number }> {
  const errors: unknown[] = [];
  const left = [...bearers];
  const open: NatsConnection[] = [];
  const began = performance.now();
  const worker = async () => {
    for (let token = left.pop(); token !== undefined; token = left.pop()) {
      await at.connect(token, freshNonce()).then(
        (connection) => open.push(connection),
        (error) => errors.push(error),
      );
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const ms = performance.now() - began;
  await Promise.all(open.map((connection) => connection.close()));
  return { errors, ms };
}

test("320 clients at 100 at a time are all admitted", async () => {
  const deps = await at.deps();
  const service = await startCallout(deps);
  const { errors } = await connectAll(await tokens(320), 100);
  expect(errors).toEqual([]);
  await service.close();
  await runCloseSteps(deps.owned.closeSteps("callout", "work:callout", "store:callout"));
});

test("two replicas share the load; with one killed the other admits everybody", async () => {
  const [one, other] = await Promise.all([startReplica(), startReplica()]);
  expect((await connectAll(await tokens(60), 10)).errors).toEqual([]);
  expect(one.admitted()).toBeGreaterThan(0);
  expect(other.admitted()).toBeGreaterThan(0);
  await one.kill();
  const { errors, ms } = await connectAll(await tokens(60), 10);
  expect(errors).toEqual([]);
  expect(ms).toBeLessThan(5_000); // nobody waited for the dead one
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
