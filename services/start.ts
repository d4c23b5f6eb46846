/**
 * Starts services of one space in this process, and stops them in order.
 *
 * ```ts
 * const authority = await startAuthService({
 *   context: { accountPublicKey, lifecycleUid }, space, servers, store, storeIdentity: store.identity,
 * });
 * const { reason } = await authority.closed;
 * ```
 */
import type { Logger } from "pino";
import type { OpenFace } from "../gateway/start.ts";
import { AuthorityError, textOf } from "../shared/errors.ts";
import { LIFE } from "../shared/limits.ts";
import { createLog } from "../shared/log.ts";
import { type OwnedConnection, OwnedConnections } from "../shared/nats/owned.ts";
import { type Ports, systemPorts } from "../shared/ports.ts";
import { openFolder } from "../shared/secrets/folder.ts";
import { hostedKeys, loadSecret, SECRET, viewKeys } from "../shared/secrets/keys.ts";
import { type SpaceFiles, type SpaceSettings, spaceFiles, storedSpaceFiles } from "../shared/secrets/settings.ts";
import { limitedTo } from "../shared/secrets/store.ts";
import { OrderedClose } from "./close.ts";
import { type AuthServiceInputs, type CheckedInputs, checkInputs } from "./inputs.ts";
import { type Readiness, ReadinessWatch } from "./readiness.ts";
import type { EndReason, HostedService, RunningService, ServiceDeps } from "./service.ts";
import { type StartBounds, startTogether } from "./together.ts";
import { VERSION } from "./version.ts";

export interface AuthService {
  readonly readiness: Readiness;
  /** Stops taking requests and finishes those in flight; repeatable, and nothing leads back. */
  drain(): Promise<void>;
  /** Ordered, retryable; rejects with an `AggregateError` that names each step that failed. */
  close(): Promise<void>;
  /** Resolves once every connection has ended, whoever ended it; never rejects. */
  readonly closed: Promise<{ readonly reason: EndReason }>;
  connections(): OwnedConnection[];
  /** Of the faces, and the capability that the loopback one asks for. */
  readonly url?: string;
  readonly publicUrl?: string;
  readonly cap?: string;
}

/** What a process of ours decides beside the inputs. */
export interface Environment {
  readonly ports: Ports;
  readonly log: Logger;
  /** Tolerates a development identity provider. */
  readonly development: boolean;
  /** Gives a start up. */
  readonly signal: AbortSignal;
}

/** Resolves when all serve. A failing start closes what it opened and rejects with its first error. */
export function startAuthService(inputs: AuthServiceInputs): Promise<AuthService> {
  const log = createLog("info");
  return startServices(inputs, { ports: systemPorts, log, development: false, signal: new AbortController().signal });
}

export async function startServices(inputs: AuthServiceInputs, environment: Environment): Promise<AuthService> {
  const checked = checkInputs(inputs);
  const files = await filesOf(checked);
  const settings = await settingsOf(checked, files);
  await refuseOtherAccount(checked);
  const { ports } = environment;
  const { tlsRequired } = settings.broker;
  const owned = new OwnedConnections({ servers: checked.servers, tlsRequired }, ports);
  const giveUp = new AbortController();
  const log = environment.log.child({ host: checked.context.lifecycleUid, space: checked.space });

  const depsOf = (service: HostedService, bounds: StartBounds): ServiceDeps => ({
    space: checked.space,
    settings,
    servers: checked.servers,
    secrets: limitedTo(checked.store, viewKeys(checked.space, service)),
    files,
    ports,
    log: log.child({ service }),
    owned,
    instance: checked.instance ?? "1",
    hostUid: checked.context.lifecycleUid,
    standingTtlS: checked.standingRenewableTtlSeconds ?? LIFE.standingTtlS,
    development: environment.development,
    ...bounds,
    version: VERSION,
  });

  const services: RunningService[] = [];
  let faces: readonly OpenFace[] = [];
  try {
    await startTogether(checked.services, depsOf, services, environment, giveUp);
    faces = await facesOf(checked, { owned, ports, log });
  } catch (error) {
    giveUp.abort(error);
    throw await unwound(error, new OrderedClose({ services: services.toReversed(), faces: [], owned }), owned);
  }
  return running({ services, faces, owned, ports, log });
}

/** The start's own error; what failed while it was unwound comes along as its cause. */
async function unwound(error: unknown, close: OrderedClose, owned: OwnedConnections): Promise<unknown> {
  try {
    await close.run();
    return error;
  } catch (failures) {
    owned.seal();
    if (!(error instanceof AuthorityError)) return failures;
    const { code, message, details, reason = message } = error;
    return new AuthorityError(code, message, { details, reason, cause: failures });
  }
}

interface Running {
  readonly services: readonly RunningService[];
  readonly faces: readonly OpenFace[];
  readonly owned: OwnedConnections;
  readonly ports: Ports;
  readonly log: Logger;
}

function running({ services, faces, owned, ports, log }: Running): AuthService {
  const stopLooking = new AbortController();
  const readiness = new ReadinessWatch(ports, (now) => log.info({ ...now }, "readiness"));
  readiness.follow([...services, ...faces], stopLooking.signal);
  const ordered = new OrderedClose({ services, faces, owned });
  let end: (ended: { reason: EndReason }) => void = () => {};
  const closed = new Promise<{ reason: EndReason }>((resolve) => {
    end = resolve;
  });
  let reason: EndReason | undefined;

  const close = async (): Promise<void> => {
    reason ??= "closed";
    readiness.settle("draining");
    stopLooking.abort();
    const attempt = ordered.run();
    void attempt
      .catch(() => {})
      .then(() => owned.ended())
      .then(() => end({ reason: reason ?? "closed" }));
    await attempt;
  };
  for (const service of services) {
    void service.ended.then((why) => {
      if (reason !== undefined) return;
      reason = why;
      log.error({ service: service.name, reason: why }, "a service ended, so its process closes");
      readiness.settle("unavailable", `${service.name}: ${why}`);
      close().catch((error) => log.error({ err: textOf(error) }, "close failed"));
    });
  }
  const [loopback, publicFace] = faces;
  return {
    get readiness() {
      return readiness.current;
    },
    drain() {
      readiness.settle("draining");
      return ordered.drain();
    },
    close,
    closed,
    connections: () => owned.list(),
    ...(loopback ? { url: loopback.url } : {}),
    ...(loopback?.cap === undefined ? {} : { cap: loopback.cap }),
    ...(publicFace ? { publicUrl: publicFace.url } : {}),
  };
}

/** The HTTP faces of an embedded authority; a process of ours leaves them to the gateway's own. */
async function facesOf(
  { space, store, port, publicFace }: CheckedInputs,
  shared: { owned: OwnedConnections; ports: Ports; log: Logger },
): Promise<OpenFace[]> {
  if (port === undefined) return [];
  const { openFaces } = await import("../gateway/start.ts");
  const views = ["gateway_loopback", ...(publicFace ? ["gateway_public" as const] : [])] as const;
  return openFaces({
    ...shared,
    space,
    port,
    ...(publicFace
      ? { publicFace: { port: publicFace.port, url: publicFace.url, trustedProxy: publicFace.trustedProxy ?? false } }
      : {}),
    secrets: limitedTo(
      store,
      views.flatMap((view) => viewKeys(space, view)),
    ),
  });
}

async function filesOf({ stateDir, store, space, instance = "1" }: CheckedInputs): Promise<SpaceFiles> {
  if (stateDir !== undefined) return spaceFiles(await openFolder(stateDir), space);
  return storedSpaceFiles(limitedTo(store, hostedKeys(space, instance)), space);
}

/** The space's settings, with what a public face of this process says differently. */
async function settingsOf({ storeIdentity, publicFace }: CheckedInputs, files: SpaceFiles): Promise<SpaceSettings> {
  const settings = await files.settings(storeIdentity);
  if (!publicFace) return settings;
  const { port, url, trustedProxy, advertisedServer, agentProvisioningUrl } = publicFace;
  return {
    ...settings,
    broker: { ...settings.broker, ...(advertisedServer === undefined ? {} : { advertised: advertisedServer }) },
    gateway: {
      ...settings.gateway,
      publicPort: port,
      publicUrl: url,
      ...(trustedProxy === undefined ? {} : { trustedProxy }),
    },
    ...(agentProvisioningUrl === undefined ? {} : { agentProvisioningUrl }),
  };
}

async function refuseOtherAccount({ store, space, context }: CheckedInputs): Promise<void> {
  const { accounts } = await loadSecret(store, space, SECRET.publicKeys);
  if (accounts.space !== context.accountPublicKey) {
    throw new AuthorityError("failed-precondition", "accountPublicKey is not the data account of this space");
  }
}
