/** Starts the callout: own users, connections, proven streams, then the subscription (lifecycles §8.1). */
import { BearerKeys } from "../../shared/bearer-keys.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { unavailable } from "../../shared/errors.ts";
import { CALLOUT } from "../../shared/limits.ts";
import { patiently } from "../../shared/patience.ts";
import { newUid, type Ports } from "../../shared/ports.ts";
import { type Trust, trustRows } from "../../shared/rows/connect.ts";
import { decodeCreds, loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { secretKey } from "../../shared/secrets/store.ts";
import { proveShapes } from "../../shared/store/shape.ts";
import { Store } from "../../shared/store/store.ts";
import type { StreamAccount, StreamName } from "../../shared/store/streams.ts";
import { ownWork } from "../../shared/work.ts";
import { Guard, watched } from "../host/guard.ts";
import { withLifetime } from "../host/lifetime.ts";
import type { EndReason, RunningService } from "../service.ts";
import { CONNECT_STEPS, type Reach } from "./checks.ts";
import { type CalloutDeps, openConnections } from "./connections.ts";
import { Issuances } from "./issuances.ts";
import { type ServedCallout, serveCallout } from "./serve.ts";
import { ServerKeys } from "./server-keys.ts";

const STREAMS: readonly StreamName[] = ["auth", "connect", "issued", "accepted"];

export async function startCallout(deps: CalloutDeps): Promise<RunningService> {
  return withLifetime(deps, ["callout", "work:callout", "store:callout"], (life) => start(deps, life));
}

async function start(deps: CalloutDeps, life: AbortController): Promise<RunningService> {
  const { space, settings, secrets, ports, log } = deps;
  const { dataAccount, authorityAccount } = await loadSecret(secrets, space, SECRET.serviceKeys);
  const { account, calloutCreds, xkey } = await loadSecret(secrets, space, SECRET.calloutKeys);
  const instanceId = newUid(ports);
  const signers = {
    space: { account: dataAccount.pub, signing: keyPairFromSeed(dataAccount.signingSeed) },
    authority: { account: authorityAccount.pub, signing: keyPairFromSeed(authorityAccount.signingSeed) },
  };
  const creds = decodeCreds(secretKey(space, "callout.json"), calloutCreds);
  const connections = await openConnections(deps, signers, creds, instanceId, life.signal);

  const connection = (of: StreamAccount) => connections[of].current();
  const warn = (fields: Readonly<Record<string, unknown>>, message: string) => log.warn(fields, message);
  const prove = () => proveShapes({ space, connection, warn }, STREAMS);
  await patiently(deps, prove);

  const store = new Store({
    space,
    ports,
    connections: { authority: () => connection("authority"), space: () => connection("space") },
  });
  const watchedConnections = [connections.authority, connections.space, watched(connections.serving)];
  const guard = new Guard({ connections: watchedConnections, prove, ports, log, signal: life.signal });
  const reach: Reach = {
    space,
    store,
    bearerKeys: new BearerKeys(() => readTrust(store, ports), ports),
    signer: { space, ...signers.space, ...(settings.streams ? { streams: settings.streams } : {}) },
    issuances: new Issuances(ports),
    ports,
    ready: () => guard.sound,
  };
  const { allowedServers } = settings.broker;
  const served = await serveCallout({
    space,
    instanceId,
    version: deps.version,
    connection: connections.serving,
    decide: async (asked, enter) => (await CONNECT_STEPS.run({ ...asked, reach }, enter)).user,
    keys: new ServerKeys(keyPairFromSeed(xkey.seed)),
    answerKeys: { account: account.pub, signing: keyPairFromSeed(account.signingSeed) },
    ...(allowedServers ? { allowedServers } : {}),
    ports,
    log,
  });
  log.info({ service: "callout", instance: instanceId }, "serving");
  return running(served, guard, life);
}

/** No exchange has written it: nobody can hold a bearer yet. */
async function readTrust(store: Store, ports: Ports): Promise<Trust> {
  const trust = await store.read(trustRows.key({}), ownWork(ports, CALLOUT.trustReadMs));
  if (!trust) throw unavailable("no trust row");
  return trust.value;
}

function running(served: ServedCallout, guard: Guard, life: AbortController): RunningService {
  let open = true;
  let close: (reason: EndReason) => void = () => {};
  const closed = new Promise<EndReason>((resolve) => {
    close = resolve;
  });
  const drain = (): Promise<void> => {
    open = false;
    return served.drain();
  };
  const lost = served.stopped.then((error) => (error ? ("subscription-lost" as const) : closed));
  return {
    name: "callout",
    ready: () => open && guard.sound,
    drain,
    async close() {
      await drain();
      life.abort();
      close("closed");
    },
    ended: Promise.race([lost, guard.ended]),
  };
}
