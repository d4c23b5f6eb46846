import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePorts, startBroker } from "../kit/broker.ts";
import { type Ground, startGround } from "../kit/ground.ts";
import { pin } from "../kit/logins.ts";

const MAIN = fileURLToPath(new URL("../../services/main.ts", import.meta.url));

let ground: Ground;
const children = new Set<ChildProcess>();
beforeAll(async () => {
  ground = await startGround({ streams: false, pins: [pin] });
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await ground.stop();
});

const serve = (...args: string[]) => start([], args);

function start(before: readonly string[], args: readonly string[]) {
  const command = [...before, "--import", "tsx", MAIN, ...args];
  const child = spawn(process.execPath, command, { stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  const exit = once(child, "exit").then(([code]) => {
    children.delete(child);
    return code as number | null;
  });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    log += text;
  });
  const line = once(createInterface({ input: child.stdout }), "line").then(([text]) => JSON.parse(text));
  line.catch(() => {});
  return { child, exit, line, log: () => log };
}

const here = () => ["--state", ground.stateDir, "--servers", ground.servers.join(",")];

describe("a service process", () => {
  it("says when it serves, ignores SIGHUP, and exits 0 on SIGTERM", async () => {
    const [metrics] = await freePorts(1);
    const { child, exit, line, log } = serve(...here(), "--services", "custodian", "--metrics-port", String(metrics));
    expect(await line).toMatchObject({ ready: true, pid: child.pid, services: ["custodian"] });
    child.kill("SIGHUP");
    const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
    expect(text).toContain("authority_ready 1");
    child.kill("SIGTERM");
    expect(await exit).toBe(0);
    expect(log()).toContain('"msg":"closed"');
  });

  it("can be stopped while it waits for a broker", async () => {
    const [port] = await freePorts(1);
    const { child, exit, log } = serve(
      ...["--state", ground.stateDir, "--services", "custodian"],
      ...["--servers", `nats://127.0.0.1:${port}`],
    );
    await expect.poll(log, { timeout: 20_000 }).toContain("waiting");
    child.kill("SIGTERM");
    expect(await exit).toBe(0);
  });

  it("exits 2 where nothing can help: a wrong flag, inputs that may not be together", async () => {
    const exits = [serve(...here(), "--verbose"), serve(...here(), "--services", "custodian,auth")];
    expect(await Promise.all(exits.map(({ exit }) => exit))).toEqual([2, 2]);
  });

  it("exits 2 where the broker takes no lines as long as ours", async () => {
    const conf = await readFile(join(ground.stateDir, "broker", "broker.conf"), "utf8");
    const short = await startBroker({ config: `${conf}\nmax_control_line: 32768` });
    const place = ["--state", ground.stateDir, "--servers", short.url];
    const started = ["custodian", "auth,exchange,callout"].map((services) => serve(...place, "--services", services));
    expect(await Promise.all(started.map(({ exit }) => exit))).toEqual([2, 2]);
    for (const { log } of started) expect(log()).toContain("max_control_line is below 65536");
    await short.stop();
  });

  it("exits 3 once a later start of its slot serves", async () => {
    const custodian = serve(...here(), "--services", "custodian");
    const former = serve(...here(), "--services", "auth");
    await Promise.all([custodian.line, former.line]);
    const latter = serve(...here(), "--services", "auth");
    await latter.line;
    expect(await former.exit).toBe(3);
    for (const { child, exit } of [latter, custodian]) {
      child.kill("SIGTERM");
      expect(await exit).toBe(0);
    }
  });

  it("closes, and exits 1, on an error that nobody caught", async () => {
    const bug = 'process.on("SIGUSR2", () => { throw new Error("a bug") })';
    const { child, exit, line, log } = start(
      ["--import", `data:text/javascript,${encodeURIComponent(bug)}`],
      [...here(), "--services", "custodian"],
    );
    await line;
    child.kill("SIGUSR2");
    expect(await exit).toBe(1);
    expect(log()).toContain("a bug");
    expect(log()).toContain('"msg":"closed"');
  });

  it("exits 130 at once on a second signal", async () => {
    const { child, exit, line, log } = serve(...here(), "--services", "custodian");
    await line;
    await ground.broker.kill("SIGSTOP"); // its close waits for the broker
    try {
      child.kill("SIGTERM");
      await expect.poll(log).toContain('"msg":"closing"');
      child.kill("SIGINT");
      expect(await exit).toBe(130);
    } finally {
      await ground.broker.kill("SIGCONT");
    }
  });
});
