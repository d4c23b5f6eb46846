/** A client that is stopped answers no ping: live as far as anybody can say, until the broker ends it (lifecycles §9). */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { formatCreds } from "../../shared/credentials/creds.ts";
import { CONNECTION } from "../../shared/limits.ts";
import { connectUser } from "../../shared/nats/connect.ts";
import { systemPorts } from "../../shared/ports.ts";
import type { Principal } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import { type Broker, startBroker } from "../kit/broker.ts";
import { Mesh } from "../services/custodian/mesh.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const ours = "local.auth_serve_x" as Principal;
const work = () => ownWork(systemPorts, 30_000);

/** Connects and says so. */
const PROGRAM = `
const { connect, credsAuthenticator } = await import("@nats-io/transport-node");
const authenticator = credsAuthenticator(new TextEncoder().encode(process.env.CREDS));
await connect({ servers: process.env.SERVER, authenticator, reconnect: false });
console.log("connected");
`;

const mesh = new Mesh();
const children: ChildProcess[] = [];
let broker: Broker;
beforeAll(async () => {
  broker = await startBroker({ config: mesh.config });
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await mesh.close();
  await broker.stop();
});

/** Another process with a connection of that principal's, stopped. */
async function halfOpen(principal: Principal, server = broker): Promise<void> {
  const { jwt, key } = mesh.user("space", principal);
  const child = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM], {
    cwd: ROOT,
    env: { ...process.env, SERVER: server.url, CREDS: formatCreds(jwt, key.seed) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  await once(createInterface({ input: child.stdout }), "line");
  child.kill("SIGSTOP");
}

it("is never called gone by itself, and a kick ends it", async () => {
  const custodian = await mesh.custodian(broker.url);
  await halfOpen(ours);
  expect((await custodian.principalLiveness(ours, work())).state).toBe("live");
  expect(await custodian.evictPrincipals([ours], work())).toEqual([
    { principal: ours, kicked: 1, remaining: 0, verifiedGone: true, scanComplete: true },
  ]);
});

it("is gone once the broker's pings went unanswered: 60 s as shipped", async () => {
  const impatient = await startBroker({ config: `${mesh.config}\nping_interval: "200ms"\nping_max: 2` });
  const custodian = await mesh.custodian(impatient.url);
  await halfOpen(ours, impatient);
  await vi.waitFor(async () => expect((await custodian.principalLiveness(ours, work())).state).toBe("gone"), {
    timeout: 10_000,
    interval: 100,
  });
  await impatient.stop();
  const shipped = await readFile(`${ROOT}nats-server.conf`, "utf8");
  const [, interval] = /^ping_interval: "(\d+)s"$/m.exec(shipped) ?? [];
  const [, max] = /^ping_max: (\d+)$/m.exec(shipped) ?? [];
  expect(Number(interval) * (Number(max) + 1)).toBe(60);
});

it("a broker that is stopped is noticed by our own pings, within 45 s", async () => {
  const { pingIntervalMs, maxPingOut } = CONNECTION;
  expect(pingIntervalMs * (maxPingOut + 1)).toBe(45_000);
  const silent = await startBroker({ config: mesh.config });
  const user = mesh.user("space", ours);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  try {
    const connecting = connectUser({ servers: silent.url, name: "t", user: () => user, reconnect: false });
    const connection = await connecting;
    await silent.kill("SIGSTOP");
    await vi.advanceTimersByTimeAsync(44_000);
    expect(connection.isClosed()).toBe(false);
    await vi.advanceTimersByTimeAsync(1_000);
    await connection.closed();
  } finally {
    vi.useRealTimers();
    await silent.stop();
  }
});
