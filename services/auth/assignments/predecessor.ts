/** That the instance which a platform assignment replaces is not, or no longer, a registered one (operations §11). */
import { AuthorityError } from "../../../shared/errors.ts";
import type { Assignment } from "../../../shared/rows/assignment.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import { serviceSpecRows } from "../../../shared/rows/service.ts";
import { MANAGER } from "../context.ts";
import type { Visit } from "../visit.ts";

/** Check 6 of the platform's door and of `manager-register`: two of the platform's never serve at once. */
export async function assertPredecessorGone(
  { context, work }: Pick<Visit, "context" | "work">,
  assignment: Assignment,
): Promise<void> {
  if (assignment.kind !== "platform-control" || assignment.predecessorInstanceId === undefined) return;
  const key = { endpoint: MANAGER, instanceId: assignment.predecessorInstanceId };
  const gate = await context.store.read(epGateRows.key(key), work);
  if (!gate || gate.value.state === "retired") return;
  const spec = gate.value.state === "open" ? await context.store.read(serviceSpecRows.key(key), work) : undefined;
  if (gate.value.state === "frozen" || spec?.revision === gate.value.registrationRevision) {
    throw new AuthorityError("failed-precondition", "the predecessor of this instance is still registered, retire it");
  }
}
