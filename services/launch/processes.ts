/** The processes of a space, what each needs to be ready first, and how each is started. */

import { connect } from "node:net";
import { join, relative } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { LAUNCH } from "../../shared/limits.ts";
import { serverArguments } from "../offline/broker-conf.ts";
import type { ProcessSpec } from "./child.ts";
import type { LaunchedSpace } from "./space.ts";
import type { WantedPort } from "./tcp-ports.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Plan extends LaunchedSpace {
  readonly stateDir: string;
  /** Path of the broker's program. */
  readonly natsServer: string;
  /** Processes of `auth`, each with a slot of its own; a few more of `exchange` and `callout` follow from it. */
  readonly replicas: number;
  /** Folder of the log files. */
  readonly logs: string;
}

/** In the order of their needs: each comes after those it names. */
export async function processesOf(plan: Plan): Promise<ProcessSpec[]> {
  const auth = names("auth", plan.replicas);
  const more = plan.replicas > 1 ? 2 : 1;
  const [exchange, callout] = [names("exchange", more), names("callout", more)];
  const idp = plan.idpPort === undefined ? [] : ["identity-provider"];
  return [
    await broker(plan),
    ...idp.map((name) =>
      script(plan, name, [], "services/dev-idp/main.ts", "--dev", "--port", String(plan.idpPort), ...publicUrl(plan)),
    ),
    service(plan, "custodian", ["broker"], "custodian"),
    ...auth.map((name, i) => service(plan, name, ["broker", "custodian"], "auth", "--instance", String(i + 1))),
    ...exchange.map((name) => service(plan, name, [...auth, ...idp], "exchange")),
    ...callout.map((name) => service(plan, name, auth, "callout")),
    script(plan, "gateway", [...exchange, ...callout], "gateway/main.ts", ...where(plan)),
  ];
}

/** `name`, or `name-1`, `name-2`, … */
const names = (name: string, count: number): string[] =>
  count === 1 ? [name] : Array.from({ length: count }, (_, i) => `${name}-${i + 1}`);

function service(plan: Plan, name: string, after: readonly string[], hosted: string, ...more: string[]): ProcessSpec {
  const development = plan.settings.development ? ["--dev"] : [];
  const args = [...where(plan), "--services", hosted, ...more, ...development];
  return script(plan, name, after, "services/main.ts", ...args);
}

function script(plan: Plan, name: string, after: readonly string[], file: string, ...args: string[]): ProcessSpec {
  return {
    name,
    command: process.execPath,
    args: ["--import", import.meta.resolve("tsx"), join(ROOT, file), ...args],
    env: environment("NODE_ENV", "TMPDIR"),
    after,
    log: join(plan.logs, `${name}.log`),
  };
}

const where = ({ stateDir, space, settings }: Plan): string[] => [
  ...["--state", stateDir],
  ...["--space", space],
  ...["--servers", settings.broker.advertised],
];

const publicUrl = ({ settings }: Plan): string[] =>
  settings.gateway.publicUrl === undefined ? [] : ["--public-url", settings.gateway.publicUrl];

/** Nothing of the launcher's environment but what is named here: credentials in it are nobody's business. */
function environment(...allowed: string[]): Record<string, string> {
  const entries = ["PATH", "HOME", ...allowed].map((name) => [name, process.env[name]]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

async function broker(plan: Plan): Promise<ProcessSpec> {
  const { natsServer, stateDir, brokerPort, logs } = plan;
  return {
    name: "broker",
    command: natsServer,
    args: await serverArguments(stateDir, { host: "127.0.0.1", port: brokerPort }),
    cwd: ROOT,
    env: environment(),
    after: [],
    log: join(logs, "broker.log"),
    probe: (signal) => greeted(brokerPort, signal),
  };
}

/** Resolves once a NATS server greets at the port. */
async function greeted(port: number, signal: AbortSignal): Promise<void> {
  while (!(await greets(port))) await delay(LAUNCH.probeMs, undefined, { signal });
}

function greets(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, "127.0.0.1");
    const end = (result: boolean): void => {
      socket.destroy();
      done(result);
    };
    socket.setTimeout(1_000, () => end(false));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
    socket.once("data", (data) => end(data.toString("latin1").startsWith("INFO ")));
  });
}

/** What the processes will listen on. */
export function portsOf(plan: Plan): WantedPort[] {
  const { settings, brokerPort, idpPort } = plan;
  const { loopbackPort, publicPort } = settings.gateway;
  const gateway = "choose another with --gateway-port";
  return [
    { port: brokerPort, purpose: "broker", remedy: "choose another with --broker-port" },
    { port: loopbackPort, purpose: "gateway, loopback face", remedy: gateway },
    ...(publicPort === undefined ? [] : [{ port: publicPort, purpose: "gateway, public face", remedy: gateway }]),
    ...(idpPort === undefined
      ? []
      : [{ port: idpPort, purpose: "development identity provider", remedy: idpRemedy(plan) }]),
  ];
}

/** Owners are named after it, so it never moves. */
const idpRemedy = ({ stateDir }: Plan): string =>
  `start a new space with another --state and --gateway-port (${relative(process.cwd(), stateDir) || "."} keeps this port)`;
