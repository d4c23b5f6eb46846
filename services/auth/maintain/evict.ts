/** Ends connections of an instance's own family and changes no row (operations §7). */
import type { managerMaintainEvict } from "../../../shared/contracts/auth/maintain/evict.ts";
import type { Input } from "../../../shared/contracts/operation.ts";
import { askEvict, type Eviction } from "../../../shared/custody.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { MAINTENANCE } from "../../../shared/limits.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import type { Uid } from "../../../shared/tokens.ts";
import { type AuthContext, MANAGER } from "../context.ts";
import { echo } from "../echo.ts";
import { servePrincipal } from "../registration/check.ts";
import { type AuthHandler, type ManagingVisit, managing } from "../visit.ts";
import { familyOf } from "./family.ts";

type Visit = ManagingVisit<Input<typeof managerMaintainEvict>>;

const denied = (message: string): AuthorityError => new AuthorityError("permission-denied", message);

export const handleManagerMaintainEvict: AuthHandler<typeof managerMaintainEvict> = async (given) => {
  const visit = managing(given);
  const { args } = visit;
  const { operation, identities, targetInstanceId, principals } = args;
  await assertOwnFamily(visit);
  const evictions = await oneAtATime(visit, () => evict(visit));
  visit.note({ verifiedGone: evictions.filter(({ verifiedGone }) => verifiedGone).length, of: evictions.length });
  return { ...echo(visit), operation, identities, targetInstanceId, principals, evictions };
};

/** Checks 1 to 4; a frozen gate is fine, since a lost registration is what this is for. */
async function assertOwnFamily(visit: Visit): Promise<void> {
  const { args, context, holder, work } = visit;
  const { instanceId, targetInstanceId, principals } = args;
  if (targetInstanceId !== instanceId) throw denied("an instance evicts its own family alone");
  const gate = await context.store.read(epGateRows.key({ endpoint: MANAGER, instanceId }), work);
  if (!gate || gate.value.state === "retired") {
    throw new AuthorityError("failed-precondition", "this instance is not prepared, or has ended");
  }
  if (gate.value.principal !== servePrincipal(holder.owner, instanceId))
    throw denied("this instance is another owner's");
  const family = await familyOf(visit, holder.owner, instanceId);
  if (!principals.every((principal) => family.has(principal))) throw denied("not all of these belong to this instance");
}

const running = new WeakMap<AuthContext, Set<Uid>>();

/** Check 5: sweeps are costly, and a second one of the same instance would say nothing new. */
async function oneAtATime<T>({ args, context }: Visit, work: () => Promise<T>): Promise<T> {
  const instances = running.get(context) ?? new Set();
  running.set(context, instances);
  if (instances.has(args.instanceId)) {
    throw new AuthorityError("resource-exhausted", "an eviction of this instance is in flight, ask again later");
  }
  instances.add(args.instanceId);
  try {
    return await work();
  } finally {
    instances.delete(args.instanceId);
  }
}

/** A custodian that does not answer is data, never success: so its answer is awaited a little less than ours is. */
function evict({ args, context, work }: Visit): Promise<Eviction[]> {
  const bounded = { ...work, deadline: work.deadline - MAINTENANCE.answerMs };
  return askEvict(context.peers, args.principals, bounded, context.ports);
}
