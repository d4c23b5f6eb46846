/** The incarnation that an operation on agents is about: always one of the holder's own owner (operations §8). */
import { AuthorityError } from "../../../shared/errors.ts";
import type { Actor, Owner, Uid } from "../../../shared/tokens.ts";
import type { ManagingVisit } from "../visit.ts";

export interface Target {
  readonly owner: Owner;
  readonly actor: Actor;
  readonly lifecycleUid: Uid;
}

/** Check 2. */
export function assertOwnTarget({ args, holder }: ManagingVisit<{ readonly target: Target }>): void {
  if (args.target.owner !== holder.owner)
    throw new AuthorityError("permission-denied", "this agent is another owner's");
}
