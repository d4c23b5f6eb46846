/** Services of a space in the test's own process, started as a host of ours starts them. */
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import type { AfterStep } from "../../services/auth/barrier/kinds.ts";
import { startAuth } from "../../services/auth/start.ts";
import { startCallout } from "../../services/callout/start.ts";
import { OrderedClose } from "../../services/close.ts";
import { startCustodian } from "../../services/custodian/start.ts";
import { startExchange } from "../../services/exchange/start.ts";
import type { HostedService, RunningService, ServiceDeps, StartService } from "../../services/service.ts";
import { CUSTODIAN } from "../../shared/limits.ts";
import { OwnedConnections } from "../../shared/nats/owned.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import { planeRows } from "../../shared/rows/plane.ts";
import { directoryStore } from "../../shared/secrets/directory.ts";
import { viewKeys } from "../../shared/secrets/keys.ts";
import type { Ground } from "./ground.ts";

/** One server on this machine answers at once: sweeps need not wait for others as long as in the field. */
const QUICK = { ...CUSTODIAN, discoverQuietMs: 50, discoverMinMs: 100, settleBaseMs: 100, afterKickMs: 1_000 };

const STARTS: Readonly<Record<HostedService, StartService>> = {
  custodian: (deps) => startCustodian(deps, QUICK),
  auth: (deps: Deps) => startAuth(deps, deps.afterStep ? { afterStep: deps.afterStep } : {}),
  exchange: startExchange,
  callout: startCallout,
};

/** `afterStep` is told of every step of `auth`'s barriers; what it throws ends a start there. */
type Deps = ServiceDeps & { readonly afterStep?: AfterStep };
export type DepsChange = Partial<Deps> & { readonly lines?: string[] };

/** What a service is started with; log lines go to `lines`. */
export async function depsOf(
  ground: Ground,
  service: HostedService,
  { lines = [], ...more }: DepsChange = {},
): Promise<Deps> {
  const { space, settings, servers, stateDir, files } = ground;
  return {
    space,
    settings,
    servers,
    secrets: await directoryStore(stateDir, viewKeys(space, service)),
    files,
    ports: systemPorts,
    log: pino({ level: "debug" }, { write: (line: string) => void lines.push(line) }),
    owned: new OwnedConnections({ servers }, more.ports ?? systemPorts),
    instance: "1",
    hostUid: newUid(systemPorts),
    standingTtlS: 900,
    development: false,
    signal: new AbortController().signal,
    version: "0.1.0",
    ...more,
  };
}

/** Remembers what it opened, for a test that ends it without a word. */
class Connections extends OwnedConnections {
  readonly opened: NatsConnection[] = [];

  override async open(...args: Parameters<OwnedConnections["open"]>): Promise<NatsConnection> {
    const connection = await super.open(...args);
    this.opened.push(connection);
    return connection;
  }
}

/** The first claim is written in the background; no test counts it among its own writes. */
async function claimed({ store }: Ground): Promise<void> {
  while (!(await store.read(planeRows.key({})))) await delay(5);
}

/** Services as one process has them. */
export interface Host {
  readonly services: readonly RunningService[];
  readonly owned: OwnedConnections;
  /** All that were opened so far, ended ones too. */
  readonly connections: readonly NatsConnection[];
  /** What they logged, one JSON text each. */
  readonly lines: readonly string[];
  service(name: HostedService): RunningService;
  /** In order; what is closed already is passed over. */
  stop(): Promise<void>;
  /** As a process that is killed: every socket goes, nothing is said before. */
  kill(): Promise<void>;
}

/** Starts them together, each waiting for what it needs of the others; `change` may differ for each. */
export async function startHost(
  ground: Ground,
  names: readonly HostedService[],
  change: (service: HostedService) => DepsChange = () => ({}),
): Promise<Host> {
  const owned = new Connections({ servers: ground.servers }, systemPorts);
  const lines: string[] = [];
  const hostUid = newUid(systemPorts);
  const giveUp = new AbortController();
  const started = await Promise.allSettled(
    names.map(async (name) => {
      try {
        const shared = { owned, lines, hostUid, signal: giveUp.signal };
        return await STARTS[name](await depsOf(ground, name, { ...shared, ...change(name) }));
      } catch (error) {
        giveUp.abort(error);
        throw error;
      }
    }),
  );
  const services = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const close = new OrderedClose({ services, faces: [], owned });
  const failed = started.find((result) => result.status === "rejected");
  if (failed) {
    await close.run();
    throw failed.reason;
  }
  if (names.includes("auth")) await claimed(ground);
  return {
    services,
    owned,
    connections: owned.opened,
    lines,
    service(name) {
      const found = services.find((one) => one.name === name);
      if (!found) throw new Error(`${name} is not hosted here`);
      return found;
    },
    stop: () => close.run(),
    async kill() {
      owned.seal();
      await Promise.all(owned.opened.map((connection) => connection.close()));
      await close.run().catch(() => {});
    },
  };
}
