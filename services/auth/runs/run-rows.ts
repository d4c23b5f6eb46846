/**
 * The credential rows of one run, found among all of its instance. Which run a row is of never changes, so that alone
 * is remembered, by key; whether a row still stands is read anew each time.
 */

import { atOnce } from "../../../shared/at-once.ts";
import type { Role } from "../../../shared/credentials/roles.ts";
import { RUNS, STORE } from "../../../shared/limits.ts";
import { keepRecent } from "../../../shared/recent.ts";
import { type EpCred, epCredRows } from "../../../shared/rows/credential.ts";
import type { Entry, Key } from "../../../shared/rows/family.ts";
import type { RunId, Uid } from "../../../shared/tokens.ts";
import { type AuthContext, MANAGER } from "../context.ts";
import type { Visit } from "../visit.ts";

type Context = Pick<Visit, "context" | "work">;

/** By key; nothing for the rows of no run. */
type RunsByKey = ReadonlyMap<string, RunId | undefined>;

const remembered = new WeakMap<AuthContext, Map<Uid, RunsByKey>>();

/** What is there now of an instance, from the stream's leader. */
export const instanceKeys = ({ context, work }: Context, instanceId: Uid): Promise<Key<EpCred>[]> =>
  context.store.keys(epCredRows, { endpoint: MANAGER, instanceId }, work);

/**
 * The rows of a run as they stand now, `own` left out; `keys` are what there was of the instance a moment ago. Rows of
 * runs come in pairs, and one commit's are listed one by one while the broker applies it: a single is looked at again.
 */
export async function rowsOfRun(
  visit: Context,
  instanceId: Uid,
  runId: RunId,
  keys: readonly Key<EpCred>[],
  own: readonly Entry<EpCred>[],
): Promise<Entry<EpCred>[]> {
  let rows = await among(visit, instanceId, runId, keys, own);
  for (let tries = 0; tries < RUNS.pairTries && !inPairs(rows); tries += 1) {
    rows = await among(visit, instanceId, runId, await instanceKeys(visit, instanceId), own);
  }
  return rows;
}

const inPairs = (rows: readonly Entry<EpCred>[]): boolean => {
  const of = (role: Role): number => rows.filter(({ value }) => value.role === role).length;
  return of("runDriver") === of("runMediator");
};

async function among(
  { context, work }: Context,
  instanceId: Uid,
  runId: RunId,
  keys: readonly Key<EpCred>[],
  own: readonly Entry<EpCred>[],
): Promise<Entry<EpCred>[]> {
  const instances = remembered.get(context) ?? new Map<Uid, RunsByKey>();
  remembered.set(context, instances);
  const known = new Map([
    ...(instances.get(instanceId) ?? []),
    ...own.map(({ key, value }) => [key.key, value.runId] as const),
  ]);
  const mine = new Set(own.map(({ key }) => key.key));
  const asked = keys.filter(({ key }) => !mine.has(key) && (!known.has(key) || known.get(key) === runId));
  const read = await atOnce(STORE.readsAtOnce, asked, (key) => context.store.read(key, work));
  const rows = read.filter((row) => row !== undefined);
  for (const { key, value } of rows) known.set(key.key, value.runId);
  // What has lapsed is forgotten.
  const standing = new Map(keys.flatMap(({ key }) => (known.has(key) ? [[key, known.get(key)]] : [])));
  keepRecent(instances, instanceId, standing, RUNS.rememberedInstances);
  return rows.filter(({ value }) => value.runId === runId);
}
