/** A person with a manager that serves, and what a test lays over its requests and its gate. */

import type { Operation } from "../../../shared/contracts/operation.ts";
import { keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { provisionedUser } from "../../../shared/credentials/users.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import type { Key } from "../../../shared/rows/family.ts";
import { type EpGate, epGateRows } from "../../../shared/rows/gate.ts";
import { loadCreds } from "../../../shared/secrets/keys.ts";
import type { EndpointLabel, Triple } from "../../../shared/tokens.ts";
import type { TestManager } from "../../kit/manager.ts";
import type { Person } from "../../kit/person.ts";
import { type SpaceOptions, startSpace, type TestSpace } from "../../kit/space.ts";

export const MANAGER = "manager" as string as EndpointLabel;

export interface Scene {
  readonly space: TestSpace;
  readonly person: Person;
  readonly manager: TestManager;
}

/** A space of its own with `auth` and `exchange`, unless `options` want more. */
export async function startScene(
  options: SpaceOptions = {},
  granted: NonNullable<Parameters<TestSpace["person"]>[1]> = { scope: ["supervise"] },
): Promise<Scene> {
  const space = await startSpace({ services: ["auth", "exchange"], ...options });
  const person = await space.person("alice", granted);
  return { space, person, manager: await space.manager(person, { upTo: "activate" }) };
}

/** The envelope of a request with K and `serveEpoch`. */
export function proven<K extends string>(manager: TestManager, kind: K) {
  const { accountPublicKey: _account, processEpoch: serveEpoch, ...rest } = manager.proven();
  return { ...rest, kind, serveEpoch };
}

/** What `Echo*` says back of such a request. */
export function provenEcho({ person }: TestManager, request: ReturnType<typeof proven>) {
  const { v, kind, space, actor, instanceId, managerLifecycleUid, requestId, registrationProof, serveEpoch } = request;
  const echo = { v, kind, space, owner: person.owner, actor, instanceId, managerLifecycleUid, requestId };
  return { ...echo, registrationProof, serveEpoch };
}

/** On the manager's own connection, without repeats. */
export const ask = (manager: TestManager, operation: Operation, args: object): Promise<unknown> =>
  manager.client.call(operation, args as never, { once: true });

export const gateKeyOf = ({ instanceId }: Pick<TestManager, "instanceId">): Key<EpGate> =>
  epGateRows.key({ endpoint: MANAGER, instanceId });

export async function stored<V>({ store }: Pick<TestSpace, "store">, key: Key<V>): Promise<V> {
  const row = await store.read(key);
  if (!row) throw new Error(`no row ${key.key}`);
  return row.value;
}

/** Runs `work` while a row has other members; then it is as it was. */
export async function during<V extends object, T>(
  space: Pick<TestSpace, "store" | "put">,
  key: Key<V>,
  change: Partial<V>,
  work: () => Promise<T>,
): Promise<T> {
  const before = await stored(space, key);
  await space.put(key, { ...before, ...change });
  try {
    return await work();
  } finally {
    await space.put(key, before);
  }
}

export const frozen = (kind: "registration" | "retirement" = "registration") => ({
  state: "frozen" as const,
  op: { opId: newUid(systemPorts), kind },
});

export const retired = () => ({ ...frozen("retirement"), state: "retired" as const });

/** The triple of a provisioned user. */
export async function provisioned(
  { space, secrets }: TestSpace,
  name: "operator" | "gateway_loopback" | "platform_host",
): Promise<Triple> {
  const { seed } = await loadCreds(secrets, space, name);
  const { owner, actor, uid } = provisionedUser(space, name, keyPairFromSeed(seed).public);
  return { owner, actor, uid };
}
