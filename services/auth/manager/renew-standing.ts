/** Renews all five standing credentials; the serve surface is the registered one, never the caller's (operations §6). */
import type { managerRenewStanding } from "../../../shared/contracts/auth/manager/renew-standing.ts";
import type { RegisteredCommand } from "../../../shared/contracts/profile.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import type { EpGate } from "../../../shared/rows/gate.ts";
import { type ServiceSpec, serviceSpecRows } from "../../../shared/rows/service.ts";
import type { Uid } from "../../../shared/tokens.ts";
import { MANAGER } from "../context.ts";
import { issue } from "../issue/issue.ts";
import { checkRegistration } from "../registration/check.ts";
import { registeredContract } from "../registration/contracts.ts";
import { type AuthHandler, type ManagingVisit, managing } from "../visit.ts";
import { standing } from "./credentials.ts";
import { material, named } from "./material.ts";

type Visit = ManagingVisit<{ instanceId: Uid }>;

export const handleManagerRenewStanding: AuthHandler<typeof managerRenewStanding> = async (given) => {
  const visit = managing(given);
  let registered = 0;
  const issued = await issue(visit, {
    async plan(current) {
      const gate = await checkRegistration(current);
      registered = gate.value.registrationRevision;
      const commands = await registeredCommands(current, gate);
      const bare = (role: "supervisor" | "executor" | "goalWriter" | "sessionLedger") =>
        standing(current, role, gate.value);
      return {
        gate,
        credentials: [
          bare("supervisor"),
          bare("executor"),
          standing(current, "serve", gate.value, commands),
          bare("goalWriter"),
          bare("sessionLedger"),
        ],
      };
    },
    async beforeCommit(current) {
      const spec = await specOf(current);
      if (spec?.revision !== registered) throw new AuthorityError("conflict", "the service record moved meanwhile");
    },
  });
  const { registrationProof, accountPublicKey, processEpoch } = visit.args;
  return {
    ...material(visit, issued),
    registrationProof,
    accountPublicKey,
    processEpoch,
    credentials: {
      supervisor: named(issued, "supervisor"),
      executor: named(issued, "executor"),
      serve: named(issued, "serve"),
      goalWriter: named(issued, "goalWriter"),
      sessionLedger: named(issued, "sessionLedger"),
    },
  };
};

/** Checks 2 to 4: the record as it was registered, its closure whole. */
async function registeredCommands(visit: Visit, gate: Entry<EpGate>): Promise<readonly RegisteredCommand[]> {
  const { context, holder, work } = visit;
  const spec = await specOf(visit);
  const [digest] = spec?.value.clusterDigests ?? [];
  if (spec?.revision !== gate.value.registrationRevision || digest === undefined) {
    throw new AuthorityError("failed-precondition", "the service record is not the registered one, register again");
  }
  if (spec.value.owner !== holder.owner) {
    throw new AuthorityError("permission-denied", "the service record is another owner's");
  }
  return (await registeredContract(context, digest, "failed-precondition", work)).commands;
}

const specOf = ({ context, args, work }: Visit): Promise<Entry<ServiceSpec> | undefined> =>
  context.store.read(serviceSpecRows.key({ endpoint: MANAGER, instanceId: args.instanceId }), work);
