/** Reads the row that grants, from the leader, and says whether it still does (operations §1, M). */
import { AuthorityError } from "../../shared/errors.ts";
import { type Actor as ActorRow, actorRows } from "../../shared/rows/actor.ts";
import { assignmentRows } from "../../shared/rows/assignment.ts";
import type { Entry } from "../../shared/rows/family.ts";
import { type Manager, managerRows } from "../../shared/rows/manager.ts";
import type { GrantedBy } from "../../shared/rows/members.ts";
import type { Reader } from "../../shared/store/store.ts";
import type { Actor, Owner, Uid } from "../../shared/tokens.ts";
import type { Work } from "../../shared/work.ts";
import { type Granter, grantedByOf, type ManagingHolder, sameGranter } from "./holders.ts";

/** One sentence for every reason, since the reasons are the ledger's. */
const notCurrent = (reason: string): AuthorityError =>
  new AuthorityError("permission-denied", "the granting row is not current", { reason });

/** An interactive, active row of a person. */
export async function activePerson(store: Reader, owner: Owner, actor: Actor, work: Work): Promise<Entry<ActorRow>> {
  const row = await store.read(actorRows.key({ owner, actor }), work);
  if (row?.value.kind !== "interactive" || row.value.state !== "active") throw notCurrent("no active interactive row");
  return row;
}

/** What a `grantedBy` names, if it still stands exactly so. */
export async function currentGranter(store: Reader, granted: GrantedBy, work: Work): Promise<Granter> {
  if (granted.kind === "actor") {
    const row = await activePerson(store, granted.owner, granted.actor, work);
    if (row.value.lifecycleUid !== granted.lifecycleUid) throw notCurrent("granted anew since");
    return { kind: "actor", row };
  }
  const row = await store.read(assignmentRows.key({ instanceId: granted.instanceId }), work);
  if (row?.value.state !== "assigned" || row.value.assignmentRevision !== granted.assignmentRevision) {
    throw notCurrent("the assignment has moved");
  }
  return { kind: "assignment", row };
}

/** A granter needs `supervise`; an assignment stands for it. */
export function assertScope(granter: Granter, scope: "supervise"): void {
  if (granter.kind === "assignment" || granter.row.value.scope.some((held) => held === scope)) return;
  throw new AuthorityError("permission-denied", `this needs the scope ${scope}`);
}

export async function managerRow(store: Reader, instanceId: Uid, work: Work): Promise<Entry<Manager>> {
  const row = await store.read(managerRows.key({ instanceId }), work);
  if (!row) throw new AuthorityError("permission-denied", "no such manager instance, prepare it first");
  return row;
}

/**
 * After the gate was read: the holder's granting row again, and that it is the one for which this instance was
 * prepared. Whoever takes a granter away touches the gate first, so a mint that read it before loses its fence.
 */
export async function recheckGranter(
  store: Reader,
  holder: ManagingHolder,
  instanceId: Uid,
  work: Work,
): Promise<void> {
  const granted = grantedByOf(holder.granter);
  const [granter, manager] = await Promise.all([
    currentGranter(store, granted, work),
    managerRow(store, instanceId, work),
  ]);
  assertScope(granter, "supervise");
  if (!sameGranter(manager.value.grantedBy, granted)) throw notCurrent("another granter prepared this instance");
}
