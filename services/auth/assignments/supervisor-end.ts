/** Ends the instance of a platform supervisor whose assignment has ended (operations §11). */
import type { supervisorEnd } from "../../../shared/contracts/auth/assignments/supervisor-end.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { assignmentRows } from "../../../shared/rows/assignment.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import { endInstance } from "../barrier/instance-end.ts";
import { MANAGER } from "../context.ts";
import { servePrincipal } from "../registration/check.ts";
import type { AuthHandler } from "../visit.ts";

export const handleSupervisorEnd: AuthHandler<typeof supervisorEnd> = async (visit) => {
  const { args, context, work } = visit;
  const { requestId, owner, instanceId } = args;
  const [assignment, gate] = await Promise.all([
    context.store.read(assignmentRows.key({ instanceId }), work),
    context.store.read(epGateRows.key({ endpoint: MANAGER, instanceId }), work),
  ]);
  if (assignment?.value.kind !== "platform-supervisor") {
    throw new AuthorityError("not-found", "no supervisor is assigned to this instance");
  }
  const principal = servePrincipal(owner, instanceId);
  if (assignment.value.owner !== owner || (gate && gate.value.principal !== principal)) {
    throw new AuthorityError("permission-denied", "this instance is another owner's");
  }
  if (assignment.value.state !== "ended") {
    throw new AuthorityError("failed-precondition", "end the assignment first (supervisor-assign)");
  }
  const ended = await endInstance(context, { endpoint: MANAGER, instanceId, principal }, work);
  visit.note({ ...ended, ...(gate?.value.state === "retired" ? { replayed: true } : {}) });
  return { requestId, owner, instanceId, retired: true, ...ended };
};
