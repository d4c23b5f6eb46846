/** Lists the goals of a manager's owner, all or none (operations §8, records §4). */
import type { managerScanGoals } from "../../../shared/contracts/auth/agents/scan-goals.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { MANAGER as LIMITS } from "../../../shared/limits.ts";
import { goalIndexRows } from "../../../shared/rows/mesh/goal.ts";
import { MANAGER } from "../context.ts";
import { provenEcho } from "../echo.ts";
import { checkRegistration } from "../registration/check.ts";
import { type AuthHandler, managing } from "../visit.ts";

export const handleManagerScanGoals: AuthHandler<typeof managerScanGoals> = async (given) => {
  const visit = managing(given);
  await checkRegistration(visit);
  const { context, holder, work } = visit;
  // The prefix fixes endpoint and owner, and a row that does not rebuild its key is corrupt.
  const prefix = { endpoint: MANAGER, owner: holder.owner };
  const { entries, corrupt } = await context.store.scan(goalIndexRows, prefix, work);
  if (corrupt.length > 0) throw goalIndexRows.refusal(corrupt[0] ?? "", "garbled");
  if (entries.length > LIMITS.goalEntries) {
    throw new AuthorityError("resource-exhausted", `this owner has more than ${LIMITS.goalEntries} goals`);
  }
  visit.note({ entries: entries.length });
  const byKey = entries.sort((one, other) => (one.key.key < other.key.key ? -1 : 1));
  return { ...provenEcho(visit), entries: byKey.map(({ value }) => value) };
};
