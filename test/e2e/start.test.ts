import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePorts } from "../kit/broker.ts";
import { mesh } from "../services/cli/cli.ts";
import { type Launched, npmStart, start } from "./launcher.ts";

const CLI = fileURLToPath(new URL("../../services/cli/main.mjs", import.meta.url));
const WAIT = 300_000;
const OWNER = "u_abcdefghijklmnopqrstuvwxy2";

let state: string;
let where: string[];
beforeAll(async () => {
  state = await mkdtemp(join(tmpdir(), "start-"));
  const [broker] = await freePorts(1);
  where = ["--state", state, "--broker-port", String(broker), "--gateway-port", String(await threeInARow())];
});
afterAll(() => rm(state, { recursive: true, force: true }));

/** The gateway takes two ports in a row, the identity provider the third. */
async function threeInARow(): Promise<number> {
  for (;;) {
    const [first = 0] = await freePorts(1);
    const servers = await Promise.all([first, first + 1, first + 2].map(listen));
    await Promise.all(servers.map((server) => server && new Promise((resolve) => server.close(resolve))));
    if (servers.every((server) => server !== undefined)) return first;
  }
}

const listen = (port: number) =>
  new Promise<ReturnType<typeof createServer> | undefined>((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => resolve(server));
  });

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

function leavesNothing(started: Launched): void {
  expect(started.pids().filter(isAlive)).toEqual([]);
  expect(existsSync(join(state, "launch.lock"))).toBe(false);
  expect(existsSync(join(state, "space.646576", "auth-service.json"))).toBe(false);
}

/** A command of the operator's in this process, its exit code and its result or failure. */
async function command(...args: string[]): Promise<{ code: number; result: unknown }> {
  const { code, out, err } = await mesh(...args, "--state", state, "--json");
  return { code, result: JSON.parse(out || err) };
}

it("one command makes a space, shows the main job, and leaves nothing behind", { timeout: WAIT }, async () => {
  const started = npmStart("--once", ...where);
  expect(await started.exit, started.problems()).toBe(0);
  const summary = await started.line(({ event }) => event === "tour");
  expect(summary).toMatchObject({ failed: 0 });
  leavesNothing(started);
});

it("starts again on the same state, survives its processes, obeys the operator, stops on SIGTERM", {
  timeout: WAIT,
}, async () => {
  const owners = await readFile(join(state, "auth", "space.646576", "owner-secret.json"), "utf8");
  const started = start("--state", state);
  await started.line(({ event }) => event === "next");
  expect(await readFile(join(state, "auth", "space.646576", "owner-secret.json"), "utf8")).toBe(owners);

  const auth = await started.line(({ process, state }) => process === "auth" && state === "ready");
  process.kill(Number(auth.pid), "SIGKILL");
  await started.line(({ process, state, pid }) => process === "auth" && state === "ready" && pid !== auth.pid);

  const lists = ["--scope", "run", "--subscribe", "general", "--publish", ""];
  const granted = await promisify(execFile)(process.execPath, [
    CLI,
    "actor",
    "grant",
    OWNER,
    "cli",
    ...lists,
    "--state",
    state,
  ]);
  expect(granted.stdout).toContain(`granted ${OWNER}.cli`);
  const actors = await command("actor", "list", "--owner", OWNER);
  expect(actors.result).toMatchObject([{ owner: OWNER, actor: "cli", scope: ["run"], allowSubscribe: ["general"] }]);
  const wider = await command("actor", "grant", OWNER, "cli", "--scope", "admin", "--subscribe", "", "--publish", "");
  expect(wider).toMatchObject({ code: 1, result: { error: { code: "failed-precondition" } } });
  const doctor = await command("doctor");
  expect(doctor, JSON.stringify(doctor.result, undefined, 1)).toMatchObject({ code: 0 });

  const second = start("--once", "--state", state);
  expect(await second.exit).toBe(1);
  expect(second.problems()).toContain(`${state} is in use by process`);

  started.kill("SIGTERM");
  expect(await started.exit).toBe(0);
  leavesNothing(started);
});
