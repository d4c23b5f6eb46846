/** Starts `auth`: own users, connections, streams, registration, then the subscriptions (lifecycles §8.1). */
import { authDescribe } from "../../shared/contracts/auth/describe.ts";
import { authContracts } from "../../shared/contracts/auth.ts";
import { custodianContracts } from "../../shared/contracts/custodian.ts";
import { exchangeContracts } from "../../shared/contracts/exchange.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { isAuthorityError } from "../../shared/errors.ts";
import { PEER_WAIT, REGISTRATION } from "../../shared/limits.ts";
import { patiently } from "../../shared/patience.ts";
import { jitter } from "../../shared/ports.ts";
import { loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { createMissing, proveShapes } from "../../shared/store/shape.ts";
import { Store } from "../../shared/store/store.ts";
import type { StreamAccount, StreamName } from "../../shared/store/streams.ts";
import { ownWork } from "../../shared/work.ts";
import { Guard } from "../host/guard.ts";
import { withLifetime } from "../host/lifetime.ts";
import { PublishedUsers } from "../host/provisioned.ts";
import { Counters } from "../host/serve.ts";
import type { EndReason, RunningService, ServiceDeps } from "../service.ts";
import { Mailbox } from "./actors/mailbox.ts";
import { PlaneClaim } from "./barrier/plane.ts";
import { resumeWhileHeld } from "./barrier/resume.ts";
import { Retirements } from "./barrier/retirements.ts";
import { type Account, type AuthConnections, openConnections, peerClient, scanOf, storeOver } from "./connections.ts";
import { AUTH, type AuthContext } from "./context.ts";
import { authEndpoints } from "./endpoints.ts";
import { publishContracts, registerSelf } from "./registration/own.ts";
import { gateKey } from "./registration/registrar.ts";
import { Serving } from "./serving.ts";

const STREAMS: readonly StreamName[] = [
  "auth",
  "connect",
  "admission",
  "issued",
  "accepted",
  "records",
  "contracts",
  "observations",
];
const DESCRIPTION = "Decides who may connect, on which subjects and for how long, and takes it back.";

/** `afterStep` is told of each step of a barrier, and may end the process there. */
export async function startAuth(deps: ServiceDeps, more: Pick<AuthContext, "afterStep"> = {}): Promise<RunningService> {
  return withLifetime(deps, ["scan:", "work:auth", "store:auth", "serve:auth"], (life) => start(deps, more, life));
}

async function start(
  deps: ServiceDeps,
  more: Pick<AuthContext, "afterStep">,
  life: AbortController,
): Promise<RunningService> {
  const { signal } = life;
  const { space, settings, secrets, files, ports, log } = deps;
  const { dataAccount, authorityAccount } = await loadSecret(secrets, space, SECRET.serviceKeys);
  const { pub: account, signingSeed, previousSeed } = dataAccount;
  const data = {
    account,
    signer: keyPairFromSeed(signingSeed),
    proofKeys: [signingSeed, ...(previousSeed === undefined ? [] : [previousSeed])],
  };
  const authority: Account = { account: authorityAccount.pub, signer: keyPairFromSeed(authorityAccount.signingSeed) };
  const instanceId = await files.instanceId(deps.instance, ports);
  const sentinel = (await files.sentinel()).text;

  const connections = await openConnections(deps, { authority, space: data }, instanceId, signal);
  const connection = (of: StreamAccount) => connections[of].current();
  const warn = (fields: Readonly<Record<string, unknown>>, message: string) => log.warn(fields, message);
  const reader = { space, connection, warn };
  const prove = async () => {
    // In memory: a single server that was restarted has forgotten it (state §1).
    await createMissing(reader, ["observations"]);
    await proveShapes(reader, STREAMS);
  };
  await patiently(deps, async () => {
    await createMissing(reader, STREAMS);
    await prove();
  });
  deps.foundStore?.(); // what registration still waits for may take as long as it takes

  const store = storeOver(connections, { space, ports });
  const peers = peerClient(deps, connections, instanceId);
  const plane = new PlaneClaim({ store, peers, ports, scan: connections.scans.authority, log });
  const retirements = new Retirements(plane);
  const context: AuthContext = {
    space,
    data,
    standingTtlS: deps.standingTtlS,
    store,
    ports,
    log,
    peers,
    mailbox: new Mailbox({
      space,
      ...(settings.streams ? { streams: settings.streams } : {}),
      connection: () => scanOf(connections, "space"),
      ports,
    }),
    plane,
    retirements,
    instanceId,
    startedBy: deps.hostUid,
    ...(settings.streams ? { streams: settings.streams } : {}),
    ...(settings.gateway.publicUrl === undefined ? {} : { publicUrl: settings.gateway.publicUrl }),
    sentinelCreds: sentinel,
    ...more,
  };
  const guard = new Guard({ connections: [connections.authority, connections.space], prove, ports, log, signal });
  const provisioned = await PublishedUsers.load(secrets, space, ports);
  let open = true;
  let epoch = 0;
  const serving = await registered(deps, context, async (gate) => {
    epoch = gate.value.processEpoch;
    return Serving.open({
      context,
      deps,
      gate,
      service: {
        space,
        service: "auth",
        description: DESCRIPTION,
        version: deps.version,
        contracts: authContracts,
        describe: authDescribe,
        endpoints: authEndpoints(context),
        state: () => (open ? (guard.sound ? "ready" : "unavailable") : "draining"),
        provisioned,
        ports,
        log,
        counters: new Counters(),
      },
    });
  });
  const gate = gateKey({ endpoint: AUTH, instanceId });
  void watchGate(context, gate, signal, serving);
  log.info({ instance: instanceId }, "serving");
  plane.start(
    { instanceId, epoch },
    (held) => resumeWhileHeld(context, held, retirements),
    () => retirements.idle(),
  );
  const stopClaim = () => plane.release(() => storeForRelease(connections, store, { space, ports }));
  return running({
    serving,
    guard,
    life,
    stopClaim,
    drained: () => (open = false),
    isOpen: () => open,
  });
}

/** A close that failed before has closed the connection of the store. */
async function storeForRelease(
  connections: AuthConnections,
  store: Store,
  options: Pick<ServiceDeps, "space" | "ports">,
): Promise<Store> {
  if (!connections.authority.current().isClosed()) return store;
  return new Store({ ...options, connections: { authority: await connections.reopenStore() } });
}

/** Wire §8: what a later start of this slot does to the gate is seen before it evicts this one. */
async function watchGate(
  { store, ports }: Pick<AuthContext, "store" | "ports">,
  key: ReturnType<typeof gateKey>,
  signal: AbortSignal,
  serving: Serving,
): Promise<void> {
  for (let tries = 0; !signal.aborted; tries += 1) {
    // It ends with the scan connection, which is opened anew.
    await store.watch(key, signal, () => void serving.look()).catch(() => {});
    await ports.sleep(jitter(ports, PEER_WAIT, Math.min(tries, 2)), signal).catch(() => {});
  }
}

/** Publishes, registers, serves; begins again where a later start came in between, waits where proof is missing. */
async function registered(
  deps: ServiceDeps,
  context: AuthContext,
  serve: (gate: Awaited<ReturnType<typeof registerSelf>>) => Promise<Serving>,
): Promise<Serving> {
  const attempt = async (): Promise<Serving> => {
    const work = ownWork(context.ports, REGISTRATION.ceremonyMs, deps.signal);
    await publishContracts(context, [authContracts, exchangeContracts, custodianContracts], work);
    return serve(await registerSelf(context, authContracts, work));
  };
  for (;;) {
    try {
      return await patiently(deps, attempt);
    } catch (error) {
      if (!isAuthorityError(error, "conflict") || deps.signal.aborted) throw error;
    }
  }
}

interface Running {
  readonly serving: Serving;
  readonly guard: Guard;
  readonly life: AbortController;
  stopClaim(): Promise<void>;
  drained(): void;
  isOpen(): boolean;
}

function running({ serving, guard, life, stopClaim, drained, isOpen }: Running): RunningService {
  let close: (reason: EndReason) => void = () => {};
  const closed = new Promise<EndReason>((resolve) => {
    close = resolve;
  });
  const drain = (): Promise<void> => {
    drained();
    return serving.drain();
  };
  return {
    name: "auth",
    ready: () => isOpen() && guard.sound && serving.serving,
    drain,
    async close() {
      await drain();
      life.abort();
      await stopClaim();
      close("closed");
    },
    ended: Promise.race([serving.ended, guard.ended, closed]),
  };
}
