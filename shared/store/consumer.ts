/** A consumer of one's own: created under a name nobody else has, proven, pulled from, deleted (state §2). */
import { createInbox, type Msg, type NatsConnection, type Subscription } from "@nats-io/nats-core";
import type { NatsConnectionImpl } from "@nats-io/nats-core/internal";
import { isAuthorityError, unavailable } from "../errors.ts";
import { STORE } from "../limits.ts";
import { askApi, describe, faultOf } from "./api.ts";

/** Of a stream or a consumer: the server that leads it, and the name of the cluster if there is one. */
export interface Led {
  readonly cluster?: { readonly name?: string; readonly leader?: string };
}

/** A server without a cluster leads whatever it has. */
export const isAlone = ({ cluster }: Led): boolean => cluster?.name === undefined;

/** Nothing on a server that stands alone. */
export const leaderIn = (led: Led): string | undefined => (isAlone(led) ? undefined : led.cluster?.leader);

export interface ConsumerInfo extends Led {
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
  "headers_only",
  "priority_groups",
  "rate_limit_bps",
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
  // Where it is placed is settled on a cluster only after the answer; a server alone answers with what it has.
  const info = isAlone(created) ? created : await consumerInfo(connection, stream, name);
  const { config: actual = {} } = info;
  const asAsked = Object.entries(config).every(([field, value]) => actual[field] === value);
  if (!asAsked || FOREIGN.some((field) => actual[field] !== undefined)) {
    throw unavailable(`${subject}: the consumer is not the one asked for`);
  }
  return info;
}

export async function consumerInfo(connection: NatsConnection, stream: string, name: string): Promise<ConsumerInfo> {
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
 *
 * On a subscription of its own: the library's `requestMany` decodes the headers of every empty message where it reads
 * the socket, and a stored one whose headers no library would write then ends that reader, and every scan with it.
 */
export async function* pull(
  connection: NatsConnection,
  stream: string,
  name: string,
  request: { batch: number; no_wait?: true; expires?: number },
  waitMs: number,
): AsyncGenerator<Msg, void> {
  const { answers, end } = ask(connection, stream, name, request, waitMs);
  let left = request.batch;
  try {
    for await (const answer of answers) {
      // What was stored has a position to acknowledge, and headers that are its writer's: the broker's word has none.
      const status = answer.reply === "" ? (answer.headers?.code ?? 0) : 0;
      if (status === NO_MORE || status === TIMED_OUT) return;
      if (status > 0) throw unavailable(`pull from ${stream}: ${status} ${answer.headers?.description ?? ""}`);
      yield answer;
      left -= 1;
      if (left === 0) return;
    }
  } catch (error) {
    throw isAuthorityError(error) ? error : unavailable(`pull from ${stream}: ${faultOf(error)}`, error);
  } finally {
    end();
  }
  throw unavailable(`pull from ${stream}: silence`);
}

/** The answers end with `end`, with the connection, or after `waitMs`. */
function ask(
  connection: NatsConnection,
  stream: string,
  name: string,
  request: { batch: number },
  waitMs: number,
): { readonly answers: Subscription; end(): void } {
  try {
    const inbox = createInbox((connection as NatsConnectionImpl).options.inboxPrefix);
    const answers = connection.subscribe(inbox, { max: request.batch });
    const late = setTimeout(() => answers.unsubscribe(), waitMs);
    connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`, JSON.stringify(request), { reply: inbox });
    const end = () => {
      clearTimeout(late);
      answers.unsubscribe();
    };
    return { answers, end };
  } catch (error) {
    throw unavailable(`pull from ${stream}: ${faultOf(error)}`, error);
  }
}

/** Status of an ended pull: nothing is left, or its time is over. */
const NO_MORE = 404;
const TIMED_OUT = 408;

/** The sequences in a delivered message's reply subject, `$JS.ACK.[<domain>.<account>.]…`: the stream's, the consumer's. */
export function positionOf(message: Msg): { readonly revision: number; readonly delivered: number } {
  const tokens = (message.reply ?? "").split(".");
  const at = tokens.length >= 11 ? 7 : 5;
  const [revision, delivered] = [Number(tokens[at]), Number(tokens[at + 1])];
  const counted = Number.isSafeInteger(revision) && revision > 0 && Number.isSafeInteger(delivered);
  if (tokens[0] !== "$JS" || tokens[1] !== "ACK" || !counted) throw unavailable("a message of no stream");
  return { revision, delivered };
}
