/** Proves that an agent's retained secrets are still its own, and says what it may do (operations §8). */
import { assertAttenuated } from "../../../shared/attenuation.ts";
import { sha256Hex } from "../../../shared/canonical.ts";
import type { agentValidateRetained } from "../../../shared/contracts/auth/agents/validate-retained.ts";
import type { Input } from "../../../shared/contracts/operation.ts";
import { AuthorityError, isAuthorityError } from "../../../shared/errors.ts";
import type { Actor as ActorRow } from "../../../shared/rows/actor.ts";
import { sameText } from "../../../shared/same-text.ts";
import { type Before, readBefore } from "../actors/activate.ts";
import { provenEcho } from "../echo.ts";
import { checkRegistration } from "../registration/check.ts";
import { type AuthHandler, type ManagingVisit, managing } from "../visit.ts";
import { parentOf } from "./parents.ts";
import { assertOwnTarget } from "./target.ts";

type Visit = ManagingVisit<Input<typeof agentValidateRetained>>;

export const handleAgentValidateRetained: AuthHandler<typeof agentValidateRetained> = async (given) => {
  const visit = managing(given);
  await checkRegistration(visit);
  assertOwnTarget(visit);
  const { args, context, work } = visit;
  const before = await readBefore(context, args.target, work);
  const row = await proven(visit, before);
  const after = await readBefore(context, args.target, work);
  if (after.actor?.revision !== before.actor?.revision || after.head?.revision !== before.head?.revision) {
    throw new AuthorityError("conflict", "the agent changed meanwhile, ask again");
  }
  const { owner, actor, lifecycleUid, scope, allowSubscribe, allowPublish, role, parent } = row;
  const authority = {
    owner,
    actor,
    lifecycleUid,
    scope,
    allowSubscribe,
    allowPublish,
    ...(role === undefined ? {} : { role }),
    ...(parent === undefined ? {} : { parent }),
  };
  return { ...provenEcho(visit), target: args.target, authority };
};

/** Check 3. One sentence, whatever it is: the reasons are the ledger's. */
async function proven(visit: Visit, { actor }: Before): Promise<ActorRow> {
  const { args, context } = visit;
  const denied = (reason: string): AuthorityError =>
    new AuthorityError("permission-denied", "the agent is not retained", { reason });
  const row = actor?.value;
  if (!sameText(args.sentinelCreds, context.sentinelCreds)) throw denied("another sentinel");
  const active = row?.kind === "managed" && row.state === "active" && row.lifecycleUid === args.target.lifecycleUid;
  if (!active) throw denied("no active managed row at this uid");
  if (!sameText(sha256Hex(args.actorToken), row.tokenHash ?? "")) throw denied("another token");
  await assertAttenuated(row, parentOf(visit)).catch((error: unknown) => {
    throw isAuthorityError(error, "permission-denied") ? denied(error.reason ?? "its parents") : error;
  });
  return row;
}
