/** Issues a short credential that reads the instance's own transfer bucket, a stream the manager makes (operations §6). */
import type { managerTransferReader } from "../../../shared/contracts/auth/manager/transfer-reader.ts";
import { ROLES } from "../../../shared/credentials/roles.ts";
import { issue } from "../issue/issue.ts";
import { credential } from "../issue/mint.ts";
import { checkDeclaration } from "../registration/check.ts";
import { type AuthHandler, managing } from "../visit.ts";
import { material, named } from "./material.ts";

export const handleManagerTransferReader: AuthHandler<typeof managerTransferReader> = async (given) => {
  const visit = managing(given);
  const { instanceId, managerLifecycleUid: uid, transferReader, registrationProof } = visit.args;
  const issued = await issue(visit, {
    async plan(current) {
      const gate = await checkDeclaration(current);
      const holder = { owner: current.holder.owner, actor: ROLES.transferReader.actor({ instanceId }), uid };
      const reader = credential({
        name: "transferReader",
        role: "transferReader",
        profile: "transfer-reader",
        key: transferReader.id,
        holder,
        bindings: { instanceId },
      });
      return { gate, credentials: [reader] };
    },
  });
  return {
    ...material(visit, issued),
    registrationProof,
    credentials: { transferReader: named(issued, "transferReader") },
  };
};
