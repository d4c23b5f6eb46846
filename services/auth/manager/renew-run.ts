/** Renews the driver and mediator credentials of a run that this instance still holds (operations §6). */
import type { managerRenewRun } from "../../../shared/contracts/auth/manager/renew-run.ts";
import type { Input } from "../../../shared/contracts/operation.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { runStatusRows, splitHolder } from "../../../shared/rows/mesh/run.ts";
import type { TakeoverId } from "../../../shared/tokens.ts";
import { ahead } from "../ahead.ts";
import { MANAGER } from "../context.ts";
import { issue } from "../issue/issue.ts";
import { checkRegistration } from "../registration/check.ts";
import { admitted, notRevoked } from "../runs/admitted.ts";
import { runCredentials } from "../runs/credentials.ts";
import { type AuthHandler, type ManagingVisit, managing } from "../visit.ts";
import { material, named } from "./material.ts";

type Visit = ManagingVisit<Input<typeof managerRenewRun>>;

export const handleManagerRenewRun: AuthHandler<typeof managerRenewRun> = async (given) => {
  const visit = managing(given);
  const { args } = visit;
  const { run, registrationProof, accountPublicKey, processEpoch } = args;
  const { runId } = run;
  const issued = await issue(visit, {
    async plan(current) {
      const gate = await checkRegistration(current);
      const keys = { ...run, takeoverId: run.takeoverId as TakeoverId };
      const names = { driver: "runDriver", mediator: "runMediator" };
      return { gate, credentials: runCredentials(current, gate.value, keys, names) };
    },
    async beforeCommit(current) {
      const held = ahead(assertHeld(current));
      await admitted(current, runId, args.instanceId);
      await held;
    },
    after: (current) => notRevoked(current, runId),
  });
  return {
    ...material(visit, issued),
    registrationProof,
    accountPublicKey,
    processEpoch,
    run,
    credentials: { runDriver: named(issued, "runDriver"), runMediator: named(issued, "runMediator") },
  };
};

const lost = (message: string): AuthorityError => new AuthorityError("conflict", message);

/** Checks 3 and 4, the run fence: it runs, and in exactly the hands of whoever asks. */
async function assertHeld({ context, args, work }: Visit): Promise<void> {
  const { run, identities } = args;
  const status = await context.store.read(runStatusRows.key({ endpoint: MANAGER, runId: run.runId }), work);
  if (status?.value.state !== "running") throw lost("the run is not running");
  const { holder, epoch, fencingToken } = status.value;
  const taken = splitHolder(run.holder);
  if (taken?.supervisor !== identities.supervisor.id) throw lost("the run is held by another supervisor");
  const same =
    run.holder === holder &&
    run.takeoverId === taken.takeoverId &&
    run.epoch === epoch &&
    run.fencingToken === fencingToken;
  if (!same) throw lost("the run is held under another takeover or attempt");
}
