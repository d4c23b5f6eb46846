/** What both operations of the kind `manager-run-attempt` say back; objects as received (operations §2, §5). */
import type { Static } from "typebox";
import type { attemptInput } from "../../../shared/contracts/auth/runs/attempt.ts";
import { echo } from "../echo.ts";
import type { ManagingVisit } from "../visit.ts";

type Given = { [M in keyof typeof attemptInput]: Static<(typeof attemptInput)[M]> };

export function attemptEcho(visit: ManagingVisit<Given>) {
  const { registrationProof, accountPublicKey, processEpoch, identities } = visit.args;
  return { ...echo(visit), registrationProof, accountPublicKey, processEpoch, identities };
}
