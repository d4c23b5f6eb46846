/** Gives a registered manager instance the credentials with which it serves (operations §6). */
import type { managerActivate } from "../../../shared/contracts/auth/manager/activate.ts";
import { readManagerArtifacts } from "../../../shared/contracts/profile.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { serviceSpecRows } from "../../../shared/rows/service.ts";
import { MANAGER } from "../context.ts";
import { issue } from "../issue/issue.ts";
import { checkDeclaration, proofOver } from "../registration/check.ts";
import { type AuthHandler, managing } from "../visit.ts";
import { standing } from "./credentials.ts";
import { material, named } from "./material.ts";

export const handleManagerActivate: AuthHandler<typeof managerActivate> = async (given) => {
  const visit = managing(given);
  const { context, args, holder, work } = visit;
  const issued = await issue(visit, {
    async plan(current) {
      const gate = await checkDeclaration(current, args.contractArtifacts);
      const contract = readManagerArtifacts(args.contractArtifacts);
      const spec = await context.store.read(
        serviceSpecRows.key({ endpoint: MANAGER, instanceId: args.instanceId }),
        work,
      );
      const registered =
        spec?.revision === gate.value.registrationRevision &&
        spec.value.clusterDigests.includes(contract.clusterDigest);
      if (!registered)
        throw new AuthorityError("failed-precondition", "these artifacts are not the registered contract");
      return {
        gate,
        credentials: [
          standing(current, "serve", gate.value, contract.commands),
          standing(current, "goalWriter", gate.value),
          standing(current, "sessionLedger", gate.value),
        ],
      };
    },
    moved: "expired",
  });
  return {
    ...material(visit, issued),
    registrationProof: args.registrationProof,
    nextRegistrationProof: proofOver(context, issued.gate.value, args, holder.owner, args.actor),
    credentials: {
      serve: named(issued, "serve"),
      goalWriter: named(issued, "goalWriter"),
      sessionLedger: named(issued, "sessionLedger"),
    },
  };
};
