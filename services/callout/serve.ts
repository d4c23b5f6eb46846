/** The micro-service `callout`: one endpoint, where the broker asks (wire §9). */
import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { Svcm } from "@nats-io/services";
import type { Logger } from "pino";
import { CALLOUT_QUEUE, CALLOUT_SUBJECT } from "../../shared/credentials/profiles/provisioned.ts";
import { textOf } from "../../shared/errors.ts";
import type { Space, Uid } from "../../shared/tokens.ts";
import { drainService } from "../host/drain.ts";
import { EndpointStatistics, type FrameworkStatistics } from "../host/statistics.ts";
import { Turns } from "./admit.ts";
import { type Authorizing, authorize, type Delivered } from "./authorize.ts";
import { XKEY_HEADER } from "./open.ts";

const DESCRIPTION = "Decides who may connect: a bearer in, a user of the space out.";

export interface ServeOptions extends Pick<Authorizing, "decide" | "keys" | "answerKeys" | "allowedServers" | "ports"> {
  readonly space: Space;
  readonly instanceId: Uid;
  readonly version: string;
  /** In the callout account. */
  readonly connection: NatsConnection;
  readonly log: Logger;
}

export interface ServedCallout {
  /** Unsubscribes and answers what has arrived. */
  drain(): Promise<void>;
  /** Settles when the library stopped the service: an error if it did so on its own. */
  readonly stopped: Promise<Error | undefined>;
}

export async function serveCallout(options: ServeOptions): Promise<ServedCallout> {
  const { connection, ports, log } = options;
  const statistics = new EndpointStatistics();
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  const authorizing: Authorizing = {
    ...options,
    turns: new Turns(ports),
    statistics,
    stopping: stopping.signal,
    send: (target, answer) => connection.publish(target, answer),
  };
  const framework = await new Svcm(connection).add({
    name: "callout",
    version: options.version,
    description: DESCRIPTION,
    // An empty queue here, since the library turns an endpoint's empty queue into the service's.
    queue: "",
    metadata: { space: options.space, instance: options.instanceId, epoch: "0", registrationRevision: "0" },
    statsHandler: async (endpoint: unknown) => {
      // The framework hands over its own endpoint, whose counters are only right for synchronous handlers.
      const { stats } = endpoint as { readonly stats?: FrameworkStatistics };
      if (stats) statistics.copyTo(stats);
      return statistics.data();
    },
  });
  framework.addEndpoint("authorize", {
    subject: CALLOUT_SUBJECT,
    queue: CALLOUT_QUEUE,
    metadata: { effect: "write", capability: "callout.authorize" },
    handler: (error, message) => {
      if (error) return;
      const work = authorize(authorizing, delivered(message));
      running.add(work);
      void work.finally(() => running.delete(work));
    },
  });
  await connection.flush();

  let drained: Promise<void> | undefined;
  return {
    drain: () => {
      drained ??= drainService({ framework, connection, running, stopping, ports, log });
      return drained;
    },
    stopped: framework.stopped.then((error) => {
      if (error) log.error({ err: textOf(error) }, "the service was stopped by its connection");
      return error ?? undefined;
    }),
  };
}

/** Read at once: a malformed header must not throw later, in the framework. */
const delivered = ({ headers, reply, data }: Msg): Delivered => ({
  xkey: headers?.get(XKEY_HEADER) ?? "",
  reply: reply ?? "",
  data,
});
