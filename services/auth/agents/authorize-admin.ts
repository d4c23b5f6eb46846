/** Says whether a caller of the manager holds `admin` at this moment (operations §8). */
import type { managerAuthorizeAdmin } from "../../../shared/contracts/auth/agents/authorize-admin.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { provenEcho } from "../echo.ts";
import { checkRegistration } from "../registration/check.ts";
import { type AuthHandler, managing } from "../visit.ts";

export const handleManagerAuthorizeAdmin: AuthHandler<typeof managerAuthorizeAdmin> = async (given) => {
  const visit = managing(given);
  await checkRegistration(visit);
  const { args, context, holder, work } = visit;
  const { caller, identities } = args;
  const { owner, actor } = caller;
  // Another owner's row is not even read: every reason against is one and the same answer.
  const row = owner === holder.owner ? await context.store.read(actorRows.key({ owner, actor }), work) : undefined;
  const authorized =
    row?.value.state === "active" &&
    row.value.lifecycleUid === caller.lifecycleUid &&
    row.value.scope.some((held) => held === "admin");
  visit.note({ authorized });
  return { ...provenEcho(visit), identities, caller, authorized };
};
