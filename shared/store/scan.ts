/** Reads every row under a prefix with a consumer of its own (state §2). */
import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { unavailable } from "../errors.ts";
import { STORE } from "../limits.ts";
import { newUid, type Ports } from "../ports.ts";
import { askApi, describe, faultOf } from "./api.ts";
import type { RawMessage } from "./read.ts";

/** Messages under one filter, the last of each subject. */
export type Snapshot = ReadonlyMap<string, Omit<RawMessage, "at">>;

/** Of a stream or a consumer: the server that leads it, and the name of the cluster if there is one. */
interface Led {
  readonly cluster?: { readonly name?: string; readonly leader?: string };
}

/** Nothing on a server that stands alone. */
const leaderIn = ({ cluster }: Led): string | undefined => (cluster?.name === undefined ? undefined : cluster.leader);

interface ConsumerInfo extends Led {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly num_pending?: number;
}

export const consumerConfig = (name: string, filter: string, deliver: "last_per_subject" | "new") => ({
  name,
  deliver_policy: deliver,
  ack_policy: "none",
  replay_policy: "instant",
  filter_subject: filter,
  mem_storage: true,
  num_replicas: 1,
  inactive_threshold: STORE.scanInactivityMs * 1_000_000,
});

/** The consumer's settings that change what it delivers; a peer's consumer of one name would differ or share. */
const FOREIGN = [
  "deliver_subject",
  "filter_subjects",
  "opt_start_seq",
  "opt_start_time",
  "pause_until",
  "durable_name",
];

/** Creates a consumer under a name nobody else has, and proves that it is the one asked for. */
export async function createConsumer(
  connection: NatsConnection,
  stream: string,
  config: ReturnType<typeof consumerConfig>,
): Promise<ConsumerInfo> {
  const { name, filter_subject: filter } = config;
  const subject = `CONSUMER.CREATE.${stream}.${name}.${filter}`;
  const created = await askApi<ConsumerInfo>(
    connection,
    subject,
    { stream_name: stream, config, action: "create" },
    STORE.readTimeoutMs,
  );
  if (created.error) throw unavailable(`${subject}: ${describe(created.error)}`);
  const info = await consumerInfo(connection, stream, name);
  const { config: actual = {} } = info;
  const asAsked = Object.entries(config).every(([field, value]) => actual[field] === value);
  if (!asAsked || FOREIGN.some((field) => actual[field] !== undefined)) {
    throw unavailable(`${subject}: the consumer is not the one asked for`);
  }
  return info;
}

async function consumerInfo(connection: NatsConnection, stream: string, name: string): Promise<ConsumerInfo> {
  const subject = `CONSUMER.INFO.${stream}.${name}`;
  const info = await askApi<ConsumerInfo>(connection, subject, undefined, STORE.readTimeoutMs);
  if (info.error) throw unavailable(`${subject}: ${describe(info.error)}`);
  return info;
}

export async function deleteConsumer(connection: NatsConnection, stream: string, name: string): Promise<void> {
  // Left behind it ends by itself after its inactivity threshold.
  await askApi(connection, `CONSUMER.DELETE.${stream}.${name}`, undefined, STORE.readTimeoutMs).catch(() => undefined);
}

/**
 * The messages of one pull as they come. It ends with the batch or with the broker's word that there is no more;
 * silence or any other word is `unavailable`.
 */
export async function* pull(
  connection: NatsConnection,
  stream: string,
  name: string,
  request: { batch: number; no_wait?: true; expires?: number },
  waitMs: number,
): AsyncGenerator<Msg, void> {
  const answers = await connection
    .requestMany(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`, JSON.stringify(request), {
      strategy: "count",
      maxMessages: request.batch,
      maxWait: waitMs,
      noMux: true,
    })
    .catch((error: unknown) => {
      throw unavailable(`pull from ${stream}: ${faultOf(error)}`, error);
    });
  let left = request.batch;
  for await (const answer of answers) {
    const status = answer.headers?.code ?? 0;
    if (status === NO_MORE || status === TIMED_OUT) return;
    if (status > 0) throw unavailable(`pull from ${stream}: ${status} ${answer.headers?.description ?? ""}`);
    yield answer;
    left -= 1;
    if (left === 0) return;
  }
  throw unavailable(`pull from ${stream}: silence`);
}

/** Status of an ended pull: nothing is left, or its time is over. */
const NO_MORE = 404;
const TIMED_OUT = 408;

/**
 * The last message of every subject under `filter`, complete: rows overwritten meanwhile appear in their old or new
 * form, none is left out. Throws `unavailable` rather than give a part.
 *
 * On a cluster a consumer may be placed beside a follower that trails the leader, and then misses what was written
 * last (measured). So only one that runs where the stream's leader is counts, from its creation to its end.
 */
export async function snapshot(
  connection: NatsConnection,
  stream: string,
  filter: string,
  ports: Ports,
  inTime: () => void,
): Promise<Snapshot> {
  for (let tries = 0; tries < STORE.scanPlacements; tries += 1) {
    inTime();
    const name = `scan-${newUid(ports).slice(0, 26)}`;
    const created = await createConsumer(connection, stream, consumerConfig(name, filter, "last_per_subject"));
    try {
      const beside = leaderIn(created);
      if (beside !== (await leaderOf(connection, stream))) continue;
      const rows = await readAll(connection, stream, name, filter, inTime);
      if (beside === (await leaderOf(connection, stream))) return rows;
    } finally {
      await deleteConsumer(connection, stream, name);
    }
  }
  throw unavailable(`scan of ${filter}: no consumer beside the leader`);
}

async function leaderOf(connection: NatsConnection, stream: string): Promise<string | undefined> {
  const info = await askApi<Led>(connection, `STREAM.INFO.${stream}`, undefined, STORE.readTimeoutMs);
  if (info.error) throw unavailable(`info of ${stream}: ${describe(info.error)}`);
  return leaderIn(info);
}

/** Pulls until a freshly read count says that nothing is left. */
async function readAll(
  connection: NatsConnection,
  stream: string,
  name: string,
  filter: string,
  inTime: () => void,
): Promise<Snapshot> {
  const rows = new Map<string, Omit<RawMessage, "at">>();
  const request = { batch: STORE.scanBatch, no_wait: true } as const;
  let idle = 0;
  for (let round = 0; round < STORE.scanRounds && idle < STORE.scanIdleRounds; round += 1) {
    inTime();
    const { num_pending: pending } = await consumerInfo(connection, stream, name);
    if (pending === 0) return rows;
    idle += 1;
    for await (const message of pull(connection, stream, name, request, STORE.scanBatchMs)) {
      idle = 0;
      keep(rows, message, filter);
    }
  }
  throw unavailable(`scan of ${filter}: no end in sight`);
}

function keep(rows: Map<string, Omit<RawMessage, "at">>, message: Msg, filter: string): void {
  const revision = sequenceOf(message);
  if (!matches(filter, message.subject)) throw unavailable(`scan of ${filter}: ${message.subject} is outside`);
  if ((rows.get(message.subject)?.revision ?? 0) >= revision) return;
  const headers = new Map<string, string>();
  for (const [name, values] of message.headers ?? []) headers.set(name, values[0] ?? "");
  rows.set(message.subject, { subject: message.subject, revision, body: message.data, headers });
}

/** The stream sequence in a delivered message's reply subject, `$JS.ACK.[<domain>.<account>.]…`. */
export function sequenceOf(message: Msg): number {
  const tokens = (message.reply ?? "").split(".");
  const sequence = Number(tokens.length >= 11 ? tokens[7] : tokens[5]);
  if (tokens[0] !== "$JS" || tokens[1] !== "ACK" || !Number.isSafeInteger(sequence) || sequence < 1) {
    throw unavailable("a message of no stream");
  }
  return sequence;
}

/** Whether a subject lies under a filter that ends in `>` or is literal, `*` standing for one token. */
export function matches(filter: string, subject: string): boolean {
  const want = filter.split(".");
  const have = subject.split(".");
  for (const [index, token] of want.entries()) {
    if (token === ">") return have.length > index;
    if (have[index] === undefined || (token !== "*" && token !== have[index])) return false;
  }
  return want.length === have.length;
}
