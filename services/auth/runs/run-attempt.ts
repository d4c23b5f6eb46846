/** Issues the driver and mediator credentials of a run's next attempt (operations §5). */
import type { runAttempt } from "../../../shared/contracts/auth/runs/run-attempt.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import type { EpCred } from "../../../shared/rows/credential.ts";
import type { Key } from "../../../shared/rows/family.ts";
import { isEnded, runStatusRows } from "../../../shared/rows/mesh/run.ts";
import type { RunId } from "../../../shared/tokens.ts";
import { ahead } from "../ahead.ts";
import { MANAGER } from "../context.ts";
import { issue, revoke } from "../issue/issue.ts";
import { checkServed, servedRequest } from "../issue/served.ts";
import { checkRegistration } from "../registration/check.ts";
import { type AuthHandler, managing, type Visit } from "../visit.ts";
import { admitted, notRevoked } from "./admitted.ts";
import { runCredentials } from "./credentials.ts";
import { evictRun } from "./earlier.ts";
import { attemptEcho } from "./echo.ts";
import { instanceKeys, rowsOfRun } from "./run-rows.ts";

export const handleRunAttempt: AuthHandler<typeof runAttempt> = async (given) => {
  const visit = managing(given);
  const { args, holder } = visit;
  const { attempt } = args;
  const { runId, driverId, mediatorId } = attempt;
  const served = attempt.served === undefined ? undefined : servedRequest(attempt.served);
  let listed: Promise<Key<EpCred>[]> | undefined;
  const issued = await issue(visit, {
    async plan(current) {
      const gate = await checkRegistration(current);
      if (served) {
        const { value } = await admitted(current, runId, args.instanceId);
        await checkServed(current, gate, served, {
          command: "run-resume",
          owner: value.caller.owner,
          agrees: (observed) => observed.runId === runId,
        });
      }
      const names = { driver: "driver", mediator: "mediator" };
      return { gate, credentials: runCredentials(current, gate.value, attempt, names) };
    },
    async beforeCommit(current) {
      const next = ahead(assertNext(current, attempt));
      await admitted(current, runId, args.instanceId);
      await next;
    },
    after(current) {
      // After the commit, as two attempts at once must not both pass over the other.
      listed = ahead(instanceKeys(current, args.instanceId));
      return notRevoked(current, runId);
    },
  });
  const all = await (listed ?? instanceKeys(visit, args.instanceId));
  const rows = await rowsOfRun(visit, args.instanceId, runId, all, issued.entries);
  const keys: readonly unknown[] = [driverId, mediatorId];
  const earlier = rows.filter(({ value }) => value.state === "active" && !keys.includes(value.credentialKey));
  if (earlier.length > 0) {
    await revoke(visit, earlier);
    await evictRun(visit, holder.owner, runId);
  }
  const { driver, mediator } = issued.credentials;
  if (!driver || !mediator) throw new TypeError("an attempt issues a driver and a mediator");
  return {
    ...attemptEcho(visit),
    attempt,
    credentials: { driver, mediator },
  };
};

/** Checks 4 and 5: the run goes on, and this attempt is exactly the next one. */
async function assertNext(
  { context, work }: Visit,
  { runId, epoch, fencingToken }: { runId: RunId; epoch: number; fencingToken: number },
): Promise<void> {
  const status = (await context.store.read(runStatusRows.key({ endpoint: MANAGER, runId }), work))?.value;
  if (status && isEnded(status)) throw new AuthorityError("failed-precondition", "the run has ended");
  const next = (recorded: number | undefined): number => (recorded ?? 0) + 1;
  if (epoch !== next(status?.epoch) || fencingToken !== next(status?.fencingToken)) {
    throw new AuthorityError("conflict", "epoch and fencingToken are not one more than the run's recorded ones");
  }
}
