/** Takes an agent's authority away while its process is still to be ended (operations §8, lifecycles §7). */
import type { agentPrepareRetirement } from "../../../shared/contracts/auth/agents/prepare-retirement.ts";
import type { Input } from "../../../shared/contracts/operation.ts";
import { retireOpId } from "../../../shared/credentials/roles.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { swap } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import { principalOf } from "../../../shared/tokens.ts";
import { echo } from "../echo.ts";
import { checkRegistration } from "../registration/check.ts";
import { type AuthHandler, type ManagingVisit, managing } from "../visit.ts";
import { assertOwnTarget } from "./target.ts";

type Visit = ManagingVisit<Input<typeof agentPrepareRetirement>>;

export const handleAgentPrepareRetirement: AuthHandler<typeof agentPrepareRetirement> = async (given) => {
  const visit = managing(given);
  const { args, context, work } = visit;
  const { target, opId } = args;
  if (opId !== retireOpId(target.lifecycleUid)) {
    throw new AuthorityError("bad-request", "opId is not the one of this lifecycle");
  }
  await checkRegistration(visit);
  assertOwnTarget(visit);
  await revoke(visit);
  // A repeat removes what is left: the uid names them.
  await context.mailbox.remove({ owner: target.owner, actor: target.actor, uid: target.lifecycleUid }, work);
  return { ...echo(visit), target, opId, prepared: true };
};

/**
 * Checks 3 to 5 and the commit. Without a fence, since it only takes away; the lifecycle's gate stays open, or a
 * replica would run the barrier before the process is released.
 */
async function revoke({ args, context, holder, work, note }: Visit): Promise<void> {
  const { owner, actor, lifecycleUid } = args.target;
  for (;;) {
    const row = await context.store.read(actorRows.key({ owner, actor }), work);
    if (!row) throw new AuthorityError("not-found", "there is no such agent");
    if (row.value.kind !== "managed") throw new AuthorityError("permission-denied", "this actor is a person's");
    if (row.value.lifecycleUid !== lifecycleUid) {
      throw new AuthorityError("expired", "this actor lives under another uid");
    }
    if (row.value.state === "revoked") return note({ replayed: true });
    const revokedBy = principalOf(holder.owner, args.actor);
    const value = { ...row.value, state: "revoked" as const, revokedAt: context.ports.now(), revokedBy };
    try {
      const [revision] = await context.store.commit([swap(row, value)], work);
      note({ revision });
      return;
    } catch (error) {
      if (!lostOn(error)) throw error;
    }
  }
}
