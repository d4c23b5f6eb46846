/** Starts the custodian: two provisioned users, one to serve the space, one to ask the servers (lifecycles §2, §8.1). */
import type { NatsConnection } from "@nats-io/nats-core";
import { custodianDescribe } from "../../shared/contracts/custodian/describe.ts";
import { custodianContracts } from "../../shared/contracts/custodian.ts";
import type { Creds } from "../../shared/credentials/creds.ts";
import { decodeJwt } from "../../shared/credentials/jwt.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { CUSTODIAN } from "../../shared/limits.ts";
import type { User } from "../../shared/nats/connect.ts";
import { patiently } from "../../shared/patience.ts";
import { newUid } from "../../shared/ports.ts";
import { loadCreds, loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { Guard, watched } from "../host/guard.ts";
import { withLifetime } from "../host/lifetime.ts";
import { PublishedUsers } from "../host/provisioned.ts";
import { type Served, serveService } from "../host/serve.ts";
import type { EndReason, RunningService, ServiceDeps } from "../service.ts";
import { attribute } from "./attribute.ts";
import { ASKER, admitAsker } from "./callers.ts";
import { connectionLivenessEndpoint } from "./connection-liveness.ts";
import { tellCredentialAge } from "./credential-age.ts";
import { Custodian } from "./custodian.ts";
import { evictPrincipalsEndpoint } from "./evict-principals.ts";
import { principalLivenessEndpoint } from "./principal-liveness.ts";
import { type CustodianLimits, SystemAccount } from "./system.ts";

const DESCRIPTION = "Ends connections and proves them gone.";

/** What of a host's dependencies the custodian uses. */
export type CustodianDeps = Pick<
  ServiceDeps,
  "space" | "settings" | "secrets" | "ports" | "log" | "owned" | "signal" | "version"
>;

export async function startCustodian(
  deps: CustodianDeps,
  limits: CustodianLimits = CUSTODIAN,
): Promise<RunningService> {
  return withLifetime(deps, ["system", "work:custodian"], (life) => start(deps, limits, life));
}

async function start(deps: CustodianDeps, limits: CustodianLimits, life: AbortController): Promise<RunningService> {
  const { space, settings, secrets, ports, log } = deps;
  const { accounts } = await loadSecret(secrets, space, SECRET.publicKeys);
  const provisioned = await PublishedUsers.load(secrets, space, ports);
  const servingCreds = await loadCreds(secrets, space, "custodian");
  const systemCreds = await loadCreds(secrets, space, "custodian_system");
  const serving = await open(deps, "work:custodian", servingCreds);
  const connection = await open(deps, "system", systemCreds);
  const system = watched(connection);
  const { signal } = life;
  const guard = new Guard({ connections: [system, watched(serving)], prove: async () => {}, ports, log, signal });
  const { expectedServers } = settings.broker;
  const custodian = new Custodian({
    system: new SystemAccount({ connection, inboxPrefix: inboxOf(systemCreds), ports, limits }),
    connected: () => system.connected,
    accounts,
    ...(expectedServers === undefined ? {} : { expectedServers }),
    untouchable: new Set([ASKER, ...principalsOf(servingCreds), ...principalsOf(systemCreds)]),
    ports,
    log,
    signal,
  });
  const incarnation = { instanceId: newUid(ports), epoch: 0, registrationRevision: 0 };
  let draining = false;
  const served = await serveService({
    space,
    service: "custodian",
    description: DESCRIPTION,
    version: deps.version,
    connection: serving,
    incarnation,
    contracts: custodianContracts,
    describe: custodianDescribe,
    endpoints: [
      evictPrincipalsEndpoint(custodian),
      principalLivenessEndpoint(custodian),
      connectionLivenessEndpoint(custodian),
    ],
    admit: admitAsker,
    state: () => (draining ? "draining" : "ready"),
    provisioned,
    ports,
    log,
  });
  void tellCredentialAge(decodeJwt(systemCreds.jwt).iat, ports, log, signal);
  log.info({ service: "custodian", instance: incarnation.instanceId }, "serving");
  const drain = (): Promise<void> => {
    draining = true;
    return served.drain();
  };
  return running({ served, guard, life, drain, ready: () => !draining && guard.sound });
}

function open(deps: CustodianDeps, label: "work:custodian" | "system", creds: Creds): Promise<NatsConnection> {
  const user: User = { jwt: creds.jwt, key: keyPairFromSeed(creds.seed) };
  const { owned, log } = deps;
  return patiently(deps, () => owned.open(label, { name: label, user: () => user, reconnect: true, log }));
}

const inboxOf = ({ seed }: Creds): string => `_INBOX_${keyPairFromSeed(seed).public}`;

function principalsOf({ jwt }: Creds) {
  const { principal } = attribute({ jwt });
  return principal === undefined ? [] : [principal];
}

interface Parts {
  readonly served: Served;
  readonly guard: Guard;
  readonly life: AbortController;
  readonly drain: () => Promise<void>;
  readonly ready: () => boolean;
}

function running({ served, guard, life, drain, ready }: Parts): RunningService {
  const closed = new Promise<EndReason>((resolve) => {
    life.signal.addEventListener("abort", () => resolve("closed"), { once: true });
  });
  const lost = served.stopped.then((error) => (error ? ("subscription-lost" as const) : closed));
  return {
    name: "custodian",
    ready,
    drain,
    async close() {
      await drain();
      life.abort();
    },
    ended: Promise.race([lost, guard.ended]),
  };
}
