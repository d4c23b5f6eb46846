/** Denies an incarnation everything with one commit, then retires it (operations §10). */
import type { actorRevoke } from "../../../shared/contracts/auth/actors/actor-revoke.ts";
import { interactiveRetireOpId, retireOpId } from "../../../shared/credentials/roles.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { principalOf } from "../../../shared/tokens.ts";
import { retire } from "../retirement/retire.ts";
import type { AuthHandler } from "../visit.ts";

export const handleActorRevoke: AuthHandler<typeof actorRevoke> = async (visit) => {
  const { args, caller, context, work } = visit;
  const { requestId, owner, actor, lifecycleUid: uid } = args;
  const row = await context.store.read(actorRows.key({ owner, actor }), work);
  if (!row) throw new AuthorityError("not-found", "there is no such actor");
  if (row.value.lifecycleUid !== uid) {
    throw new AuthorityError("expired", "the actor lives under another uid", {
      details: [{ kind: "ai.cotal.auth.current-lifecycle", lifecycleUid: row.value.lifecycleUid }],
    });
  }
  const opId = row.value.kind === "managed" ? retireOpId(uid) : interactiveRetireOpId(uid);
  const by = principalOf(caller.owner, caller.actor);
  const { evictedPrincipals } = await retire(visit, { owner, actor, uid, opId, by });
  return { requestId, owner, actor, lifecycleUid: uid, opId, revoked: true, retired: true, evictedPrincipals };
};
