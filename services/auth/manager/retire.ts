/** Issues the short credential that asks for one retirement, which retires nothing by itself (operations §6). */
import type { managerRetire } from "../../../shared/contracts/auth/manager/retire.ts";
import { interactiveRetireOpId, ROLES, retireOpId } from "../../../shared/credentials/roles.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { issue } from "../issue/issue.ts";
import { credential } from "../issue/mint.ts";
import { assertEpoch, checkDeclaration } from "../registration/check.ts";
import { type AuthHandler, managing } from "../visit.ts";
import { material, named } from "./material.ts";

export const handleManagerRetire: AuthHandler<typeof managerRetire> = async (given) => {
  const visit = managing(given);
  const { instanceId, managerLifecycleUid: uid, retirement, registrationProof } = visit.args;
  const { id, target, opId, serveEpoch } = retirement;
  const issued = await issue(visit, {
    async plan(current) {
      // Which of the two it is follows from the actor's row, which only the retirement reads (lifecycles §1).
      if (![retireOpId, interactiveRetireOpId].some((derive) => derive(target.lifecycleUid) === opId)) {
        throw new AuthorityError("bad-request", "opId is not derived from the target");
      }
      const { owner } = current.holder;
      if (target.owner !== owner) throw new AuthorityError("permission-denied", "the target is another owner's");
      const gate = await checkDeclaration(current);
      assertEpoch(instanceId, gate, serveEpoch);
      const requester = credential({
        name: "retirementRequester",
        role: "retirementRequester",
        profile: "retirement-requester",
        key: id,
        holder: { owner, actor: ROLES.retirementRequester.actor({ instanceId }), uid },
        bindings: { target: { owner: target.owner, actor: target.actor, uid: target.lifecycleUid } },
      });
      return { gate, credentials: [requester] };
    },
  });
  return {
    ...material(visit, issued),
    registrationProof,
    retirement,
    credentials: { retirementRequester: named(issued, "retirementRequester") },
  };
};
