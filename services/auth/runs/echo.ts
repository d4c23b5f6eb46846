/** What both operations of the kind `manager-run-attempt` say back; objects as received (operations §2, §5). */
import type { Static } from "typebox";
import type { attemptInput } from "../../../shared/contracts/auth/runs/attempt.ts";
import type { ManagingVisit } from "../visit.ts";

type Given = { [M in keyof typeof attemptInput]: Static<(typeof attemptInput)[M]> };

export function attemptEcho({ args, holder }: ManagingVisit<Given>) {
  const { v, kind, space, actor, instanceId, managerLifecycleUid, requestId } = args;
  const { registrationProof, accountPublicKey, processEpoch, identities } = args;
  return {
    v,
    kind,
    space,
    owner: holder.owner,
    actor,
    instanceId,
    managerLifecycleUid,
    requestId,
    registrationProof,
    accountPublicKey,
    processEpoch,
    identities,
  };
}
