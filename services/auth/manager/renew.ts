/** Renews what keeps a registered manager instance going: its supervisor and executor credentials (operations §6). */
import type { managerRenew } from "../../../shared/contracts/auth/manager/renew.ts";
import { issue } from "../issue/issue.ts";
import { checkRegistration } from "../registration/check.ts";
import { type AuthHandler, managing } from "../visit.ts";
import { standing } from "./credentials.ts";
import { material, named } from "./material.ts";

export const handleManagerRenew: AuthHandler<typeof managerRenew> = async (given) => {
  const visit = managing(given);
  const issued = await issue(visit, {
    async plan(current) {
      const gate = await checkRegistration(current);
      return {
        gate,
        credentials: [standing(current, "supervisor", gate.value), standing(current, "executor", gate.value)],
      };
    },
  });
  return {
    ...material(visit, issued),
    registrationProof: visit.args.registrationProof,
    credentials: { supervisor: named(issued, "supervisor"), executor: named(issued, "executor") },
  };
};
