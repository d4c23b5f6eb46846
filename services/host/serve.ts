/** Puts a service's endpoints on the rail as a NATS micro-service that nothing can throw into (wire §9). */
import { setMaxListeners } from "node:events";
import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { Svcm } from "@nats-io/services";
import type { Logger } from "pino";
import { Compile } from "typebox/compile";
import type { ContractSet, Operation, ServiceName } from "../../shared/contracts/operation.ts";
import { textOf } from "../../shared/errors.ts";
import type { Ports } from "../../shared/ports.ts";
import { classSubscription, instanceSubscription } from "../../shared/subjects.ts";
import { type Answering, answer } from "./answer.ts";
import { descriptor } from "./describe.ts";
import { drainService } from "./drain.ts";
import type { Endpoint, Request } from "./handler.ts";
import { Places } from "./places.ts";
import type { Incarnation, Incoming, ProvisionedUsers, RoadSigns, ServingState } from "./road.ts";
import { EndpointStatistics, type FrameworkStatistics } from "./statistics.ts";

export interface ServiceOptions {
  readonly space: string;
  readonly service: ServiceName;
  readonly description: string;
  /** Semantic version of the package. */
  readonly version: string;
  /** The serving user's connection; everything else of a service uses others. */
  readonly connection: NatsConnection;
  readonly incarnation: Incarnation;
  readonly contracts: ContractSet;
  /** The `describe` declaration of this service; its handler is the host's own. */
  readonly describe: Operation;
  readonly endpoints: readonly Endpoint[];
  readonly admit?: (request: Request, operation: Operation) => Promise<void>;
  readonly state: () => ServingState;
  readonly provisioned: ProvisionedUsers;
  readonly ports: Ports;
  readonly log: Logger;
  /** Counters kept across a renewal of the serving connection. */
  readonly counters?: Counters;
}

/** Statistics and places survive a reconnect or renewal. */
export class Counters {
  readonly places = new Places();
  readonly #statistics = new Map<string, EndpointStatistics>();

  of(endpoint: string): EndpointStatistics {
    let statistics = this.#statistics.get(endpoint);
    if (!statistics) {
      statistics = new EndpointStatistics();
      this.#statistics.set(endpoint, statistics);
    }
    return statistics;
  }

  reset(): void {
    for (const statistics of this.#statistics.values()) statistics.reset();
  }
}

export interface Served {
  /** Unsubscribes, lets work in flight finish within its limit and answers the rest `unavailable`. */
  drain(): Promise<void>;
  /** Settles when the library stopped the service on its own: an error, or `undefined` after `drain`. */
  readonly stopped: Promise<Error | undefined>;
  readonly inFlight: () => number;
}

export async function serveService(options: ServiceOptions): Promise<Served> {
  const { space, service, connection, incarnation, contracts, ports, log } = options;
  const counters = options.counters ?? new Counters();
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal); // one per request in flight
  const running = new Set<Promise<void>>();
  const framework = await new Svcm(connection).add({
    name: service,
    version: options.version,
    description: options.description,
    // An empty queue here, since the library turns an endpoint's empty queue into the service's.
    queue: "",
    metadata: {
      space,
      instance: incarnation.instanceId,
      epoch: String(incarnation.epoch),
      registrationRevision: String(incarnation.registrationRevision),
      contract: contracts.clusterDigest,
    },
    statsHandler: async (endpoint) => copyStatistics(endpoint, counters),
  });

  const put = (name: string, served: Endpoint, subject: string, queue: string): void => {
    const signs: RoadSigns = {
      space,
      operation: served.operation,
      input: Compile(served.operation.input),
      contracts,
      incarnation,
      places: counters.places,
      provisioned: options.provisioned,
      state: options.state,
    };
    const { admit } = options;
    const answering: Answering = {
      endpoint: served,
      signs,
      output: Compile(served.operation.output),
      statistics: counters.of(name),
      ports,
      log,
      ...(admit ? { admit: (request: Request) => admit(request, served.operation) } : {}),
      stopping: stopping.signal,
      maxPayload: () => connection.info?.max_payload ?? 1_048_576,
      send: (target, reply) => connection.publish(target, reply.data, reply.headers ? { headers: reply.headers } : {}),
    };
    framework.addEndpoint(name, {
      subject,
      queue,
      metadata: endpointMetadata(served.operation, contracts),
      handler: (error, message) => {
        if (error) return;
        const work = answer(answering, incoming(message));
        running.add(work);
        void work.finally(() => running.delete(work));
      },
    });
  };

  const describing: Endpoint = {
    operation: options.describe,
    handle: async () => descriptor(service, incarnation, contracts),
  };
  for (const served of [...options.endpoints, describing]) {
    const { name } = served.operation;
    put(name, served, classSubscription(space, service, name), service);
  }
  put("describe-instance", describing, instanceSubscription(space, service, incarnation.instanceId, "describe"), "");
  await connection.flush();

  let drained: Promise<void> | undefined;
  return {
    drain: () => {
      drained ??= drainService({ framework, connection, running, stopping, ports, log });
      return drained;
    },
    stopped: framework.stopped.then((error) => {
      if (error) log.error({ service, err: textOf(error) }, "the service was stopped by its connection");
      return error ?? undefined;
    }),
    inFlight: () => running.size,
  };
}

/**
 * Reads what is needed at once and lets nothing out: the library decodes headers when they are asked for, and what it
 * then throws over a malformed one would end its reader, and with it every endpoint of the connection.
 */
function incoming(message: Msg): Incoming {
  return { subject: message.subject, reply: message.reply ?? "", headers: headersOf(message), data: message.data };
}

function headersOf(message: Msg): Incoming["headers"] {
  try {
    return message.headers;
  } catch {
    return "unreadable";
  }
}

function endpointMetadata(operation: Operation, contracts: ContractSet): Record<string, string> {
  const pair = contracts.pairs.get(operation.name);
  return {
    effect: operation.effect,
    capability: operation.capability,
    ...(pair ? { input: pair.inputDigest, output: pair.outputDigest } : {}),
  };
}

/** The framework hands over its own endpoint object, whose counters are only right for synchronous handlers. */
async function copyStatistics(endpoint: unknown, counters: Counters): Promise<unknown> {
  const { name, stats } = endpoint as { name?: string; stats?: FrameworkStatistics };
  if (name === undefined || !stats) return null;
  const statistics = counters.of(name);
  statistics.copyTo(stats);
  return statistics.data();
}
