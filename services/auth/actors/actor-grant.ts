/** Activates a person's actor; a change is a revoke, then a grant (operations §10). */
import type { actorGrant } from "../../../shared/contracts/auth/actors/actor-grant.ts";
import { isDerivedActor } from "../../../shared/credentials/roles.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import type { Actor as ActorRow } from "../../../shared/rows/actor.ts";
import { credRows } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { principalOf } from "../../../shared/tokens.ts";
import type { AuthHandler, Visit } from "../visit.ts";
import { activate, assertHeadFree, type Before, type Grant, readBefore } from "./activate.ts";
import { assertReadable } from "./channels.ts";

export const handleActorGrant: AuthHandler<typeof actorGrant> = async (visit) => {
  const { args, holder, context, work } = visit;
  const { requestId, owner, actor, scope, allowSubscribe, allowPublish, role, label } = args;
  if (isDerivedActor(actor))
    throw new AuthorityError("bad-request", "this actor name is reserved for derived principals");
  assertReadable(allowSubscribe);
  if (holder.kind === "admin" && holder.owner === owner && holder.row.value.actor === actor) {
    throw new AuthorityError("permission-denied", "only the operator changes an administrator's own row");
  }
  const grant: Grant = {
    owner,
    actor,
    kind: "interactive",
    scope: [...new Set(scope)],
    allowSubscribe: [...new Set(allowSubscribe)],
    allowPublish: [...new Set(allowPublish)],
    ...(role === undefined ? {} : { role }),
    ...(label === undefined ? {} : { label }),
    grantedBy: principalOf(visit.caller.owner, visit.caller.actor),
  };
  const granted = await activate(
    context,
    {
      grant,
      managerInstance: "",
      ...(holder.kind === "admin" ? { fences: { root: holder.row } } : {}),
      decide: () => decide(visit, grant),
    },
    work,
  );
  const { lifecycleUid, grantedAt } = granted.value;
  visit.note({ lifecycleUid, revision: granted.revision });
  return { requestId, owner, actor, lifecycleUid, grantedAt };
};

/** Checks 3 and 4. An identical active row with a live root is answered as it stands. */
async function decide(visit: Visit, grant: Grant): Promise<{ replay: Entry<ActorRow> } | Before> {
  const { context, work } = visit;
  const before = await readBefore(context, grant, work);
  const row = before.actor?.value;
  if (row?.kind === "managed") throw new AuthorityError("already-exists", "this alias is an agent's");
  if (before.actor && row?.state === "active") {
    if (sameContent(row, grant) && (await hasLiveRoot(visit, before))) {
      visit.note({ replayed: true });
      return { replay: before.actor };
    }
    throw new AuthorityError("failed-precondition", "the actor is active with other content, revoke it first", {
      details: [{ kind: "ai.cotal.auth.current-lifecycle", lifecycleUid: row.lifecycleUid }],
    });
  }
  assertHeadFree(before.head);
  return before;
}

const asSet = (list: readonly string[]): string => JSON.stringify([...new Set(list)].sort());

/** Lists compare as sets. */
function sameContent(row: ActorRow, grant: Grant): boolean {
  return (
    asSet(row.scope) === asSet(grant.scope) &&
    asSet(row.allowSubscribe) === asSet(grant.allowSubscribe) &&
    asSet(row.allowPublish) === asSet(grant.allowPublish) &&
    row.role === grant.role &&
    row.label === grant.label
  );
}

async function hasLiveRoot({ context, work }: Visit, { actor, head }: Before): Promise<boolean> {
  if (!actor || head?.value.state !== "active" || head.value.lifecycleUid !== actor.value.lifecycleUid) return false;
  const { lifecycleUid: uid, currentCredentialId: credentialId } = head.value;
  const root = await context.store.read(credRows.key({ uid, credentialId }), work);
  return root?.value.state === "active" && root.value.exp > context.ports.now();
}
