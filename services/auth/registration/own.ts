/** The registration of `auth` itself: it publishes every contract, writes its own record and serves alone (wire §8). */
import type { Json } from "../../../shared/canonical.ts";
import type { Artifact, ContractSet } from "../../../shared/contracts/operation.ts";
import { authServeActor } from "../../../shared/credentials/roles.ts";
import { AuthorityError, internal, isAuthorityError } from "../../../shared/errors.ts";
import { artifactRows } from "../../../shared/rows/artifact.ts";
import type { Entry, Key } from "../../../shared/rows/family.ts";
import type { EpGate } from "../../../shared/rows/gate.ts";
import {
  type ServiceSpec,
  type ServiceStatus,
  serviceSpecRows,
  serviceStatusRows,
} from "../../../shared/rows/service.ts";
import { create, swap } from "../../../shared/store/message.ts";
import { principalOf } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import { AUTH, type AuthContext, LOCAL } from "../context.ts";
import { register } from "./registrar.ts";

/**
 * Step 1: one create per artifact. A lost create is read back: equal bytes are success. Others are a fault that is told
 * and stops nobody: whoever may ask the broker anything can aim its answer at a digest that is not taken yet, and what
 * stands there stays. Readers verify the digest, and nothing here is decided on these bytes.
 */
export async function publishContracts(context: AuthContext, sets: readonly ContractSet[], work: Work): Promise<void> {
  for (const artifact of sets.flatMap(({ artifacts }) => artifacts)) await publish(context, artifact, work);
}

async function publish(context: AuthContext, { digest, text }: Artifact, work: Work): Promise<void> {
  const key = artifactRows.key(digest);
  if (await isTaken(context, key, work)) return;
  await context.store.commit([create(key, JSON.parse(text))], work).catch(async (error: unknown) => {
    if (!isAuthorityError(error, "conflict")) throw error;
    if (!(await isTaken(context, key, work))) throw internal(`artifact ${digest} neither published nor there`);
  });
}

async function isTaken({ store, log }: AuthContext, key: Key<Json>, work: Work): Promise<boolean> {
  const { state } = await store.inspect(key, work);
  if (state === "unreadable") log.error({ artifact: key.key }, "other bytes stand under the digest of a contract");
  return state !== "absent";
}

/** Steps 2 to 7. */
export const registerSelf = (context: AuthContext, contracts: ContractSet, work: Work): Promise<Entry<EpGate>> =>
  register(
    context,
    {
      endpoint: AUTH,
      instanceId: context.instanceId,
      principal: principalOf(LOCAL, authServeActor(context.instanceId)),
      contains: "all",
      createsGate: true,
      spec: (of) => writeSpec(context, contracts, of),
    },
    work,
  );

/** Always written, so that a restart is a new registration revision; an unreadable row of our own is written over. */
async function writeSpec(context: AuthContext, contracts: ContractSet, work: Work): Promise<Entry<ServiceSpec>> {
  const value: ServiceSpec = {
    endpoint: AUTH,
    owner: LOCAL,
    clusterDigests: [contracts.clusterDigest],
    protocol: { v: 2 },
  };
  return overwrite(context, serviceSpecRows.key({ endpoint: AUTH, instanceId: context.instanceId }), () => value, work);
}

/** Step 9: a status of a higher epoch is somebody later's. */
export async function writeStatus(
  context: AuthContext,
  gate: Entry<EpGate>,
  version: string,
  work: Work,
): Promise<void> {
  const { processEpoch, registrationRevision } = gate.value;
  const value: ServiceStatus = {
    epoch: processEpoch,
    state: "registered",
    observedSpecRevision: registrationRevision,
    version,
    at: context.ports.now(),
  };
  const key = serviceStatusRows.key({ endpoint: AUTH, instanceId: context.instanceId });
  await overwrite(
    context,
    key,
    (before) => {
      if (before && before.epoch > processEpoch) throw new AuthorityError("conflict", "a later start has registered");
      return value;
    },
    work,
  );
}

async function overwrite<V>(
  { store }: AuthContext,
  key: Key<V>,
  next: (before: V | undefined) => V,
  work: Work,
): Promise<Entry<V>> {
  const found = await store.inspect(key, work);
  const value = next(found.state === "row" ? found.entry.value : undefined);
  const message =
    found.state === "absent"
      ? create(key, value)
      : swap({ key, revision: found.state === "row" ? found.entry.revision : found.revision }, value);
  const [revision = 0] = await store.commit([message], work);
  return { key, value, revision };
}
