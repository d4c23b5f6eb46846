/** The processes of a space, what each needs to be ready first, and how each is started. */

import { existsSync } from "node:fs";
import { connect, isIPv6 } from "node:net";
import { join, relative } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { LAUNCH } from "../../shared/limits.ts";
import { type ClusterMember, serverArguments } from "../offline/broker-conf.ts";
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
  /** IP address on which the broker takes clients; absent: loopback. */
  readonly brokerHost?: string;
  /** Three brokers instead of one. */
  readonly cluster: boolean;
  /** Folder of the log files. */
  readonly logs: string;
}

/** In the order of their needs: each comes after those it names. */
export async function processesOf(plan: Plan): Promise<ProcessSpec[]> {
  const auth = names("auth", plan.replicas);
  const more = plan.replicas > 1 ? 2 : 1;
  const [exchange, callout] = [names("exchange", more), names("callout", more)];
  const idp = plan.idpPort === undefined ? [] : ["identity-provider"];
  const brokers = await Promise.all(brokersOf(plan).map((member) => broker(plan, member)));
  const all = brokers.map(({ name }) => name);
  return [
    ...brokers,
    ...idp.map((name) =>
      script(plan, name, [], "services/dev-idp/main.ts", "--dev", "--port", String(plan.idpPort), ...publicUrl(plan)),
    ),
    service(plan, "custodian", all, "custodian"),
    ...auth.map((name, i) => service(plan, name, [...all, "custodian"], "auth", "--instance", String(i + 1))),
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

const where = (plan: Plan): string[] => [
  ...["--state", plan.stateDir],
  ...["--space", plan.space],
  ...[
    "--servers",
    brokersOf(plan)
      .map(({ port }) => `nats://${inUrl(reachedAt(plan))}:${port}`)
      .join(","),
  ],
];

const publicUrl = ({ settings }: Plan): string[] =>
  settings.gateway.publicUrl === undefined ? [] : ["--public-url", settings.gateway.publicUrl];

/** Nothing of the launcher's environment but what is named here: credentials in it are nobody's business. */
function environment(...allowed: string[]): Record<string, string> {
  const entries = ["PATH", "HOME", ...allowed].map((name) => [name, process.env[name]]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

const LOOPBACK = "127.0.0.1";

/** Where processes of this machine reach the broker: one that listens everywhere, on loopback. */
const reachedAt = ({ brokerHost = LOOPBACK }: Pick<Plan, "brokerHost">): string =>
  ["0.0.0.0", "::"].includes(brokerHost) ? LOOPBACK : brokerHost;

const inUrl = (address: string): string => (isIPv6(address) ? `[${address}]` : address);

const CLUSTER_SIZE = 3;

interface Broker {
  readonly name: string;
  readonly port: number;
  readonly member?: ClusterMember;
}

/** One, or three that take clients on a row of ports and routes on the row after it. */
function brokersOf({ brokerPort, cluster }: Pick<Plan, "brokerPort" | "cluster">): Broker[] {
  if (!cluster) return [{ name: "broker", port: brokerPort }];
  const row = Array.from({ length: CLUSTER_SIZE }, (_, i) => i);
  const routePorts = row.map((i) => brokerPort + CLUSTER_SIZE + i);
  return row.map((i) => {
    const name = `broker-${i + 1}`;
    return { name, port: brokerPort + i, member: { name, routePort: brokerPort + CLUSTER_SIZE + i, routePorts } };
  });
}

async function broker(plan: Plan, { name, port, member }: Broker): Promise<ProcessSpec> {
  return {
    name,
    command: plan.natsServer,
    args: await serverArguments(plan.stateDir, { host: plan.brokerHost ?? LOOPBACK, port }, member),
    cwd: ROOT,
    env: environment(),
    after: [],
    log: join(plan.logs, `${name}.log`),
    probe: (signal) => greeted(reachedAt(plan), port, signal),
  };
}

/** Rows of one broker are not those of a cluster: a state stays what it was first started as. */
export function mixedStores({ stateDir, cluster }: Pick<Plan, "stateDir" | "cluster">): string | undefined {
  const other = join(stateDir, "broker", cluster ? "jetstream" : "broker-1");
  if (!existsSync(other)) return undefined;
  return cluster
    ? `${stateDir} keeps the rows of a single broker: leave out --cluster, or name another --state`
    : `${stateDir} keeps the rows of a cluster: start it with --cluster, or name another --state`;
}

/** Resolves once a NATS server greets at the port. */
async function greeted(host: string, port: number, signal: AbortSignal): Promise<void> {
  while (!(await greets(host, port))) await delay(LAUNCH.probeMs, undefined, { signal });
}

function greets(host: string, port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, host);
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
  const { settings, idpPort } = plan;
  const { loopbackPort, publicPort } = settings.gateway;
  const gateway = "choose another with --gateway-port";
  const broker = "choose another with --broker-port";
  return [
    ...brokersOf(plan).flatMap(({ name, port, member }) =>
      [port, ...(member ? [member.routePort] : [])].map((wanted) => ({ port: wanted, purpose: name, remedy: broker })),
    ),
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
