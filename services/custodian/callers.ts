/** Only `local.auth` may ask; what is public, anyone (lifecycles §2). */
import type { Operation } from "../../shared/contracts/operation.ts";
import { AuthorityError } from "../../shared/errors.ts";
import { Actor, Owner, type Principal, principalOf } from "../../shared/tokens.ts";
import type { Request } from "../host/handler.ts";

/** Whoever asks is connected as this; its uid is its instance's. */
export const ASKER: Principal = principalOf(Owner.parse("local"), Actor.parse("auth"));

export async function admitAsker({ caller }: Pick<Request, "caller">, { callers }: Operation): Promise<void> {
  if (callers.includes("anyone") || principalOf(caller.owner, caller.actor) === ASKER) return;
  throw new AuthorityError("permission-denied", "only the authority may ask the custodian");
}
