/** Creates missing streams and proves the shape of every one in use (state §1). */
import type { NatsConnection } from "@nats-io/nats-core";
import { AuthorityError, unavailable } from "../errors.ts";
import { STORE } from "../limits.ts";
import type { Space } from "../tokens.ts";
import { askApi, BROKER, describe } from "./api.ts";
import { ANY, placeOf, type StreamAccount, type StreamName, shapeOf } from "./streams.ts";

/** What shapes are proven through. */
export interface ShapeReader {
  readonly space: Space;
  connection(account: StreamAccount): NatsConnection;
  /** Told what is not as it should be but drops nothing: a replica count. */
  warn?(fields: Readonly<Record<string, unknown>>, message: string): void;
}

interface StreamInfo {
  readonly config?: Readonly<Record<string, unknown>>;
}

/** Streams with message TTL and atomic batches need it. */
const MINIMUM = [2, 12] as const;
const CLUSTER_REPLICAS = 3;

/** Creates those of the streams that do not exist; the journal is the mesh's own and never created here. */
export async function createMissing(reader: ShapeReader, streams: readonly StreamName[]): Promise<void> {
  for (const stream of streams) {
    if (stream === "journal" || (await infoOf(reader, stream))) continue;
    const place = placeOf(stream, reader.space);
    const connection = reader.connection(place.account);
    const config = { name: place.name, num_replicas: replicasFor(connection), ...settings(stream, reader.space) };
    const made = await askApi<StreamInfo>(connection, `STREAM.CREATE.${place.name}`, config, STORE.readTimeoutMs);
    // Another replica may have been first: the proof that follows decides.
    if (made.error && made.error.err_code !== BROKER.streamNameInUse) {
      throw unavailable(`creating ${place.name}: ${describe(made.error)}`);
    }
  }
}

/**
 * Refuses (`failed-precondition`) a broker that is too old or a stream of another shape, since a mirror, a limit or
 * one more subject can silently drop a fence. A stream that does not exist yet is `unavailable`.
 */
export async function proveShapes(reader: ShapeReader, streams: readonly StreamName[]): Promise<void> {
  const reason = await drift(reader, streams);
  if (reason === undefined) return;
  throw new AuthorityError("failed-precondition", "the broker or a stream is not as it must be", { reason });
}

/** The first difference from what must be, in words for the log, or nothing. A fault is `unavailable`. */
export async function drift(reader: ShapeReader, streams: readonly StreamName[]): Promise<string | undefined> {
  for (const stream of streams) {
    const { account, name } = placeOf(stream, reader.space);
    const connection = reader.connection(account);
    const version = connection.info?.version ?? "";
    if (!isRecent(version)) return `the server is ${version}, older than ${MINIMUM.join(".")}`;
    const info = await infoOf(reader, stream);
    if (!info) {
      // The mesh makes its journal when the first run starts.
      if (stream === "journal") continue;
      throw unavailable(`stream ${name} does not exist`);
    }
    const { config = {} } = info;
    const difference = differenceOf(config, shapeOf(stream, reader.space));
    if (difference) return `stream ${name}: ${difference}`;
    const replicas = replicasFor(connection);
    if (config.num_replicas !== replicas) {
      reader.warn?.({ stream: name, replicas: config.num_replicas, wanted: replicas }, "stream replica count");
    }
  }
  return undefined;
}

async function infoOf(reader: ShapeReader, stream: StreamName): Promise<StreamInfo | undefined> {
  const { account, name } = placeOf(stream, reader.space);
  const info = await askApi<StreamInfo>(
    reader.connection(account),
    `STREAM.INFO.${name}`,
    undefined,
    STORE.readTimeoutMs,
  );
  if (info.error?.err_code === BROKER.streamNotFound) return undefined;
  if (info.error || !info.config) throw unavailable(`info of ${name}: ${info.error ? describe(info.error) : "empty"}`);
  return info;
}

/** What must be said at creation; absence is the broker's default. */
function settings(stream: StreamName, space: Space): Record<string, unknown> {
  const said = Object.entries(shapeOf(stream, space)).filter(([, value]) => value !== ANY && value !== undefined);
  return Object.fromEntries(said);
}

function differenceOf(
  actual: Readonly<Record<string, unknown>>,
  wanted: Readonly<Record<string, unknown>>,
): string | undefined {
  for (const [field, value] of Object.entries(wanted)) {
    if (value === ANY) continue;
    const has = actual[field];
    if (!same(has, value)) return `${field} is ${JSON.stringify(has)}, not ${JSON.stringify(value)}`;
  }
  return undefined;
}

/** The broker leaves out what is false, 0, -1 or empty. */
function same(has: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return Array.isArray(has) && has.length === wanted.length && wanted.every((item) => has.includes(item));
  }
  if (has === undefined) return wanted === undefined || wanted === false || wanted === 0 || wanted === -1;
  return has === wanted || (wanted === undefined && Array.isArray(has) && has.length === 0);
}

const replicasFor = (connection: NatsConnection): number => (connection.info?.cluster ? CLUSTER_REPLICAS : 1);

function isRecent(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > MINIMUM[0] || (major === MINIMUM[0] && minor >= MINIMUM[1]);
}
