/** Several nats-servers as one JetStream cluster, each a `Broker` of its own. */
import { setTimeout as delay } from "node:timers/promises";
import { type ConnectionOptions, connect } from "@nats-io/transport-node";
import { type Broker, type BrokerOptions, freePorts, startBroker } from "./broker.ts";

export interface ClusterOptions extends Omit<BrokerOptions, "config" | "name"> {
  readonly servers?: number;
  /** Appended to every server's configuration. */
  readonly config?: string;
  /** How the readiness probe connects, where the configuration demands a user of an account with JetStream. */
  readonly probe?: ConnectionOptions;
}

export interface Cluster {
  readonly brokers: readonly Broker[];
  readonly urls: string[];
  /** The server of that name. */
  named(name: string): Broker;
  stop(): Promise<void>;
}

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { servers = 3, config = "", probe, ...rest } = options;
  const ports = await freePorts(servers * 2);
  const clients = ports.slice(0, servers);
  const routes = ports.slice(servers);
  const urls = routes.map((port) => `"nats-route://127.0.0.1:${port}"`).join(", ");
  const started = await Promise.allSettled(
    clients.map((port, index) =>
      startBroker(
        {
          ...rest,
          name: `n${index + 1}-${port}`,
          config: `cluster { name: test, listen: "127.0.0.1:${routes[index]}", routes: [${urls}] }\n${config}`,
        },
        port,
      ),
    ),
  );
  const brokers = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const cluster = new BrokerCluster(brokers);
  const failed = started.find((result) => result.status === "rejected");
  try {
    if (failed) throw failed.reason;
    if (rest.jetstream !== false) await Promise.all(brokers.map((broker) => electedAt(broker, servers, probe)));
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

class BrokerCluster implements Cluster {
  readonly brokers: readonly Broker[];

  constructor(brokers: readonly Broker[]) {
    this.brokers = brokers;
  }

  get urls(): string[] {
    return this.brokers.map((broker) => broker.url);
  }

  named(name: string): Broker {
    const broker = this.brokers.find((one) => one.name === name);
    if (!broker) throw new Error(`no server is named ${name}`);
    return broker;
  }

  /** Bound, since it is handed on by itself. */
  readonly stop = async (): Promise<void> => {
    await Promise.all(this.brokers.map((broker) => broker.stop()));
  };
}

/** Waits until a stream with a replica on every server can be made, seen from this server: a leader, all peers known. */
async function electedAt(broker: Broker, replicas: number, probe: ConnectionOptions = {}): Promise<void> {
  const connection = await connect({ ...probe, servers: broker.url, reconnect: false });
  const ask = async (subject: string, body: unknown): Promise<{ error?: { err_code?: number } }> =>
    (await connection.request(`$JS.API.${subject}`, JSON.stringify(body), { timeout: 2_000 })).json();
  const name = `probe-${broker.port}`;
  const deadline = Date.now() + 20_000;
  try {
    for (;;) {
      const config = { name, subjects: [name], storage: "memory", num_replicas: replicas };
      const made = await ask(`STREAM.CREATE.${name}`, config).catch(() => ({ error: {} }));
      if (!made.error) break;
      if (Date.now() > deadline) throw new Error(`no JetStream leader:\n${broker.log()}`);
      await delay(25);
    }
    await ask(`STREAM.DELETE.${name}`, {});
  } finally {
    await connection.close();
  }
}
