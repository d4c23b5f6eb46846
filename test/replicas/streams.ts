/** Who leads the streams of a cluster, and whether every server has all of them. */
import type { NatsConnection } from "@nats-io/nats-core";
import { placeOf, type StreamName } from "../../shared/store/streams.ts";
import type { TestSpace } from "../kit/space.ts";
import { OUR_STREAMS } from "../kit/store.ts";

interface Info {
  readonly cluster?: {
    readonly leader?: string;
    readonly replicas?: readonly { readonly name: string; readonly current?: boolean; readonly lag?: number }[];
  };
}

async function ask(connection: NatsConnection, subject: string, body: object = {}): Promise<Info> {
  return (await connection.request(`$JS.API.STREAM.${subject}`, JSON.stringify(body), { timeout: 2_000 })).json();
}

const info = ({ roots, space }: TestSpace, stream: StreamName): Promise<Info> => {
  const { account, name } = placeOf(stream, space);
  return ask(roots[account], `INFO.${name}`);
};

/** Name of the server that leads the stream; nothing while nobody does. */
export async function leaderOf(space: TestSpace, stream: StreamName): Promise<string | undefined> {
  return (await info(space, stream)).cluster?.leader;
}

/** What some server has not of a stream of ours, as sentences. */
export async function missing(space: TestSpace): Promise<string[]> {
  const each = OUR_STREAMS.map(async (stream) => {
    const { leader, replicas = [] } = (await info(space, stream)).cluster ?? {};
    const behind = replicas.filter(({ current, lag = 0 }) => current !== true || lag > 0).map(({ name }) => name);
    if (leader === undefined || replicas.length !== space.brokers.length - 1) return [`${stream} has no three servers`];
    return behind.map((name) => `${stream} is behind on ${name}`);
  });
  return (await Promise.all(each)).flat();
}

/** Has that server lead; it must be asked until it does. */
export async function makeLeader({ roots, space }: TestSpace, stream: StreamName, preferred: string): Promise<void> {
  const { account, name } = placeOf(stream, space);
  await ask(roots[account], `LEADER.STEPDOWN.${name}`, { placement: { preferred } });
}
