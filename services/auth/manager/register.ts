/** Registers what a manager instance has published and gives its next epoch (operations §6, wire §8). */
import type { managerRegister } from "../../../shared/contracts/auth/manager/register.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type ServiceSpec, serviceSpecRows } from "../../../shared/rows/service.ts";
import type { Digest } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import { assertPredecessorGone } from "../assignments/predecessor.ts";
import { MANAGER } from "../context.ts";
import { servePrincipal } from "../registration/check.ts";
import { registeredContract } from "../registration/contracts.ts";
import { gateKey, register } from "../registration/registrar.ts";
import { type AuthHandler, type ManagingVisit, managing } from "../visit.ts";

type Visit = ManagingVisit<Parameters<AuthHandler<typeof managerRegister>>[0]["args"]>;

export const handleManagerRegister: AuthHandler<typeof managerRegister> = async (given) => {
  const visit = managing(given);
  const { context, args, holder, work } = visit;
  const { instanceId, requestId } = args;
  const registering = { endpoint: MANAGER, instanceId, principal: servePrincipal(holder.owner, instanceId) };
  const gate = await context.store.read(gateKey(registering), work);
  const { state, op, principal } = gate?.value ?? {};
  if (state !== "open" && !(state === "frozen" && op?.kind === "registration")) {
    throw new AuthorityError("failed-precondition", "this instance cannot register: prepare it, or it has ended");
  }
  if (principal !== registering.principal)
    throw new AuthorityError("permission-denied", "this instance is another owner's");
  const spec = await ownSpec(visit, work);
  let clusterDigest = await onlyCluster(visit, spec);
  if (holder.granter.kind === "assignment") await assertPredecessorGone(visit, holder.granter.row.value);
  /** The record as it is by then; its executor may have written another one meanwhile. */
  const registered = async (of: Work): Promise<Entry<ServiceSpec>> => {
    const now = await ownSpec(visit, of);
    if (now.revision !== spec.revision) clusterDigest = await onlyCluster(visit, now);
    return now;
  };
  const opened = await register(
    context,
    { ...registering, contains: "serve-family", createsGate: false, spec: registered },
    work,
  );
  const { generation, processEpoch, registrationRevision } = opened.value;
  visit.note({ generation, processEpoch, revision: opened.revision });
  return { v: 1, requestId, instanceId, generation, processEpoch, registrationRevision, clusterDigest };
};

/** Checks 3 and 4: the executor wrote the spec before, and it names this owner. */
async function ownSpec(
  { context, args, holder }: ManagingVisit<{ instanceId: Visit["args"]["instanceId"] }>,
  work: Work,
): Promise<Entry<ServiceSpec>> {
  const spec = await context.store.read(serviceSpecRows.key({ endpoint: MANAGER, instanceId: args.instanceId }), work);
  if (!spec) throw new AuthorityError("failed-precondition", "write the service record of this instance first");
  if (spec.value.owner !== holder.owner)
    throw new AuthorityError("permission-denied", "the service record is another owner's");
  return spec;
}

/** Check 5: its closure is published and within the schema profile. */
async function onlyCluster({ context, work }: Visit, { value }: Entry<ServiceSpec>): Promise<Digest> {
  const [digest, ...more] = value.clusterDigests;
  if (digest === undefined || more.length > 0) {
    throw new AuthorityError("contract-invalid", "a manager registers exactly one cluster");
  }
  await registeredContract(context, digest, "contract-invalid", work);
  return digest;
}
