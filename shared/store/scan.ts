/** Reads every row under a prefix with a consumer of its own (state §2). */
import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { unavailable } from "../errors.ts";
import { STORE } from "../limits.ts";
import { matches } from "../patterns.ts";
import { newUid, type Ports } from "../ports.ts";
import { askApi, describe } from "./api.ts";
import {
  consumerConfig,
  consumerInfo,
  createConsumer,
  deleteConsumer,
  isAlone,
  type Led,
  leaderIn,
  positionOf,
  pull,
} from "./consumer.ts";
import type { RawMessage } from "./read.ts";

/** Messages under one filter, the last of each subject. */
export type Snapshot = ReadonlyMap<string, Omit<RawMessage, "at">>;

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
      const besideLeader = async () => isAlone(created) || beside === (await leaderOf(connection, stream));
      if (!(await besideLeader())) continue;
      const rows = await readAll(connection, stream, name, filter, created.num_pending ?? 0, inTime);
      if (await besideLeader()) return rows;
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

/**
 * Pulls until a freshly read count says that nothing is left; `known` is how many there were at the beginning. Never
 * more are asked for than there are: to say that there is no more the broker would search the stream to its end.
 */
async function readAll(
  connection: NatsConnection,
  stream: string,
  name: string,
  filter: string,
  known: number,
  inTime: () => void,
): Promise<Snapshot> {
  const rows = new Map<string, Omit<RawMessage, "at">>();
  let idle = 0;
  for (let round = 0; round < STORE.scanRounds && idle < STORE.scanIdleRounds; round += 1) {
    inTime();
    const pending = round === 0 && known > 0 ? known : (await consumerInfo(connection, stream, name)).num_pending;
    if (pending === 0) return rows;
    idle += 1;
    const request = { batch: Math.min(pending ?? STORE.scanBatch, STORE.scanBatch), no_wait: true } as const;
    for await (const message of pull(connection, stream, name, request, STORE.scanBatchMs)) {
      idle = 0;
      keep(rows, message, filter);
    }
  }
  throw unavailable(`scan of ${filter}: no end in sight`);
}

function keep(rows: Map<string, Omit<RawMessage, "at">>, message: Msg, filter: string): void {
  const { revision } = positionOf(message);
  if (!matches(filter, message.subject)) throw unavailable(`scan of ${filter}: ${message.subject} is outside`);
  if ((rows.get(message.subject)?.revision ?? 0) >= revision) return;
  rows.set(message.subject, { subject: message.subject, revision, body: message.data, headers: headersOf(message) });
}

/** The library decodes headers when they are asked for, and throws over those that no library would write. */
function headersOf(message: Msg): ReadonlyMap<string, string> {
  try {
    return new Map([...(message.headers ?? [])].map(([name, values]) => [name, values[0] ?? ""]));
  } catch {
    return UNREADABLE;
  }
}

/** Nobody can say of such a message that the broker did not make it. */
const UNREADABLE: ReadonlyMap<string, string> = new Map([["Nats-Stream", ""]]);
