/** The operator's door for an agent whose manager cannot ask any more (operations §9). */
import type { agentRetire } from "../../../shared/contracts/auth/retirement/agent-retire.ts";
import { retireOpId } from "../../../shared/credentials/roles.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { headRows } from "../../../shared/rows/head.ts";
import { principalOf } from "../../../shared/tokens.ts";
import type { AuthHandler } from "../visit.ts";
import { retire } from "./retire.ts";

export const handleAgentRetire: AuthHandler<typeof agentRetire> = async (visit) => {
  const { args, caller, context, work } = visit;
  const { owner, actor, lifecycleUid: uid } = args;
  const [row, head] = await Promise.all([
    context.store.read(actorRows.key({ owner, actor }), work),
    context.store.read(headRows.key({ owner, actor }), work),
  ]);
  const stands = row?.value.lifecycleUid === uid && !(row.value.kind === "managed" && row.value.state === "revoked");
  if (stands) throw new AuthorityError("conflict", "this is no agent prepared for its retirement");
  if (!head || head.value.lifecycleUid !== uid) {
    if (!head || head.value.state === "retired") return { retired: false, lifecycleUid: uid, notStarted: true };
    throw new AuthorityError("conflict", "this principal lives under another uid", {
      details: [{ kind: "ai.cotal.auth.current-lifecycle", lifecycleUid: head.value.lifecycleUid }],
    });
  }
  const by = principalOf(caller.owner, caller.actor);
  const { already } = await retire(visit, { owner, actor, uid, opId: retireOpId(uid), by });
  return { retired: true, lifecycleUid: uid, ...(already ? { alreadyRetired: true as const } : {}) };
};
