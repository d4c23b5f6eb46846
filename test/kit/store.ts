/** A store over a broker without accounts: both of a space's accounts are one here. */
import { connect, headers as headerBlock, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { patiently } from "../../shared/patience.ts";
import { type Ports, systemPorts } from "../../shared/ports.ts";
import { createMissing, type ShapeReader } from "../../shared/store/shape.ts";
import { Store } from "../../shared/store/store.ts";
import { type AnyStream, placeOf, type StreamName, subjectOf } from "../../shared/store/streams.ts";
import { Space } from "../../shared/tokens.ts";
import { ownWork, type Work } from "../../shared/work.ts";

/** The streams of ours, the mesh's journal left out. */
export const OUR_STREAMS: readonly StreamName[] = [
  "auth",
  "connect",
  "admission",
  "issued",
  "accepted",
  "records",
  "contracts",
  "observations",
];

/** The members of API answers that tests look at. */
export interface ApiAnswer {
  readonly config?: Record<string, unknown>;
  readonly cluster?: { readonly leader?: string };
  readonly consumers?: readonly string[];
  readonly state?: { readonly messages: number; readonly last_seq: number };
  readonly error?: { readonly err_code: number; readonly description: string };
}

export interface TestStore {
  readonly store: Store;
  readonly connection: NatsConnection;
  readonly space: Space;
  readonly shapes: ShapeReader;
  /** Work with so many milliseconds. */
  work(ms?: number): Work;
  /** One question to the JetStream API, the error thrown. */
  api(subject: string, body?: unknown): Promise<ApiAnswer>;
  /** A message as anybody might send it; the broker's answer. */
  put(stream: AnyStream, key: string, body: string | Uint8Array, headers?: Record<string, string>): Promise<number>;
  close(): Promise<void>;
}

export async function openStore(
  servers: string | string[],
  options: { space?: string; streams?: readonly StreamName[]; ports?: Ports } = {},
): Promise<TestStore> {
  const { streams = OUR_STREAMS, ports = systemPorts } = options;
  const space = Space.parse(options.space ?? "demo");
  const connection = await connect({ servers, reconnectTimeWait: 50, maxReconnectAttempts: -1 });
  const both = { authority: connection, space: connection };
  const shapes: ShapeReader = { space, connection: () => connection };
  const opened: TestStore = {
    store: new Store({ space, ports, connections: both, scanConnections: both }),
    connection,
    space,
    shapes,
    work: (ms = 10_000) => ownWork(ports, ms),
    async api(subject, body) {
      const answer = await connection.request(`$JS.API.${subject}`, body === undefined ? "" : JSON.stringify(body), {
        timeout: 5_000,
      });
      const parsed = answer.json<ApiAnswer>();
      if (parsed.error) throw new Error(`${parsed.error.err_code} ${parsed.error.description}`);
      return parsed;
    },
    async put(stream, key, body, headers = {}) {
      const all = headerBlock();
      for (const [name, value] of Object.entries(headers)) all.set(name, value);
      const answer = await connection.request(subjectOf(stream, space, key), body, { headers: all, timeout: 5_000 });
      const ack = answer.json<{ seq: number; error?: { description: string } }>();
      if (ack.error) throw new Error(ack.error.description);
      return ack.seq;
    },
    close: () => connection.close(),
  };
  // A cluster whose leader a test has ended answers again once another leads.
  const signal = AbortSignal.timeout(30_000);
  await patiently({ ports, signal, log: pino({ level: "silent" }) }, () => createMissing(shapes, streams));
  return opened;
}

/** A stream's own name in the space. */
export const streamName = (stream: AnyStream, space: Space): string => placeOf(stream, space).name;
