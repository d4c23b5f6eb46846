/** Starts the exchange: its two users, proven streams, trust, then the subscriptions (lifecycles §8.1). */
import type { NatsConnection } from "@nats-io/transport-node";
import { exchangeDescribe } from "../../shared/contracts/exchange/describe.ts";
import { exchangeContracts } from "../../shared/contracts/exchange.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { patiently } from "../../shared/patience.ts";
import { newUid } from "../../shared/ports.ts";
import { refused } from "../../shared/secrets/document.ts";
import { loadCreds, loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import type { IdpPin } from "../../shared/secrets/pins.ts";
import { proveShapes } from "../../shared/store/shape.ts";
import { Store } from "../../shared/store/store.ts";
import type { StreamName } from "../../shared/store/streams.ts";
import { Guard, watched } from "../host/guard.ts";
import { withLifetime } from "../host/lifetime.ts";
import { PublishedUsers } from "../host/provisioned.ts";
import { type Served, serveService } from "../host/serve.ts";
import type { EndReason, RunningService, ServiceDeps } from "../service.ts";
import { admitCaller } from "./callers.ts";
import type { ExchangeDeps } from "./deps.ts";
import { bundleOf, discoveryEndpoint } from "./discovery.ts";
import { exchangeAgentEndpoint } from "./exchange-agent.ts";
import { exchangeUserEndpoint } from "./exchange-user.ts";
import { identifyEndpoint } from "./identify.ts";
import { IdpVerifier } from "./idp.ts";
import { jwksEndpoint } from "./jwks.ts";
import { platformOwner } from "./owner.ts";
import { TrustKeeper } from "./trust.ts";

const STREAMS: readonly StreamName[] = ["auth", "connect", "records"];
const DESCRIPTION = "Turns a login or an agent's token into a bearer, and publishes the keys it is verified with.";

export async function startExchange(deps: ServiceDeps): Promise<RunningService> {
  return withLifetime(deps, ["work:exchange", "store:exchange"], (life) => start(deps, life));
}

async function start(deps: ServiceDeps, life: AbortController): Promise<RunningService> {
  const { space, settings, secrets, files, ports, log } = deps;
  const pins = await pinsOf(deps);
  const { accounts } = await loadSecret(secrets, space, SECRET.publicKeys);
  const { text: sentinel } = await files.sentinel();
  const provisioned = await PublishedUsers.load(secrets, space, ports);
  const authority = await connect(deps, "store:exchange", "exchange_store");
  const serving = await connect(deps, "work:exchange", "exchange");

  const connections = { authority, space: serving };
  const warn = (fields: Readonly<Record<string, unknown>>, message: string) => log.warn(fields, message);
  const prove = () => proveShapes({ space, connection: (account) => connections[account], warn }, STREAMS);
  await patiently(deps, prove);
  const store = new Store({ space, ports, connections });
  const trust = await patiently(deps, () => TrustKeeper.open({ space, store, secrets, ports, log }));
  const guard = new Guard({
    connections: [watched(authority), watched(serving)],
    prove,
    ports,
    log,
    signal: life.signal,
  });

  let open = true;
  const exchange: ExchangeDeps = {
    space,
    trust,
    idp: new IdpVerifier(pins, ports),
    targets: { space, store, authority, ports, platform: platformOwner(trust.ownerSecret, space, accounts.space) },
    bundle: bundleOf(settings, pins, sentinel),
  };
  const served = await serveService({
    space,
    service: "exchange",
    description: DESCRIPTION,
    version: deps.version,
    connection: serving,
    incarnation: { instanceId: newUid(ports), epoch: 0, registrationRevision: 0 },
    contracts: exchangeContracts,
    describe: exchangeDescribe,
    endpoints: [
      exchangeUserEndpoint(exchange),
      exchangeAgentEndpoint(exchange),
      identifyEndpoint(exchange),
      jwksEndpoint(exchange),
      discoveryEndpoint(exchange),
    ],
    admit: admitCaller,
    state: () => (open ? (guard.sound ? "ready" : "unavailable") : "draining"),
    provisioned,
    ports,
    log,
  });
  void trust.follow(life.signal);
  log.info({ rev: trust.rev }, "serving");
  return running({ served, guard, trust, life, drained: () => (open = false), isOpen: () => open });
}

/** One of a development provider counts with `--dev` alone, so that none survives into service (identity §12). */
async function pinsOf({ files, development }: ServiceDeps): Promise<readonly IdpPin[]> {
  const { pins } = await files.pins();
  if (!development && pins.some((pin) => pin.development)) throw refused("idp.json", "has a development provider");
  return pins;
}

async function connect(
  deps: ServiceDeps,
  label: "work:exchange" | "store:exchange",
  name: "exchange" | "exchange_store",
): Promise<NatsConnection> {
  const { secrets, space, owned, log } = deps;
  const creds = await loadCreds(secrets, space, name);
  const user = { jwt: creds.jwt, key: keyPairFromSeed(creds.seed) };
  return patiently(deps, () => owned.open(label, { name: label, user: () => user, reconnect: true, log }));
}

interface Running {
  readonly served: Served;
  readonly guard: Guard;
  readonly trust: TrustKeeper;
  readonly life: AbortController;
  drained(): void;
  isOpen(): boolean;
}

function running({ served, guard, trust, life, drained, isOpen }: Running): RunningService {
  let close: (reason: EndReason) => void = () => {};
  const closed = new Promise<EndReason>((resolve) => {
    close = resolve;
  });
  const lost = served.stopped.then((error) => (error ? ("subscription-lost" as const) : closed));
  const drain = (): Promise<void> => {
    drained();
    return served.drain();
  };
  return {
    name: "exchange",
    ready: () => isOpen() && guard.sound && trust.ready,
    drain,
    async close() {
      await drain();
      life.abort();
      close("closed");
    },
    ended: Promise.race([lost, guard.ended]),
  };
}
