/** Ends an instance that is lost or given up (operations §11). */
import type { instanceRetire } from "../../../shared/contracts/auth/assignments/instance-retire.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import { endInstance } from "../barrier/instance-end.ts";
import type { AuthHandler } from "../visit.ts";

export const handleInstanceRetire: AuthHandler<typeof instanceRetire> = async (visit) => {
  const { args, context, work } = visit;
  const { requestId, endpoint, instanceId } = args;
  const gate = await context.store.read(epGateRows.key({ endpoint, instanceId }), work);
  if (!gate) throw new AuthorityError("not-found", "there is no such instance");
  const ended = await endInstance(context, { endpoint, instanceId, principal: gate.value.principal }, work);
  visit.note({ ...ended, ...(gate.value.state === "retired" ? { replayed: true } : {}) });
  return { requestId, endpoint, instanceId, retired: true, ...ended };
};
