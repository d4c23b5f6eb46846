/** Takes a run back for good: the marker first, then its credentials, then whoever holds them (operations §5). */
import type { runRevoke } from "../../../shared/contracts/auth/runs/run-revoke.ts";
import { ROLES } from "../../../shared/credentials/roles.ts";
import { AuthorityError, internal, isAuthorityError } from "../../../shared/errors.ts";
import { type Revocation, revocationRows } from "../../../shared/rows/admission.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import { managerRows } from "../../../shared/rows/manager.ts";
import { create } from "../../../shared/store/message.ts";
import { type Owner, principalOf, type RunId, splitPrincipal } from "../../../shared/tokens.ts";
import { MANAGER } from "../context.ts";
import { ASSIGNED_ACTOR } from "../holders.ts";
import { checkRegistration } from "../registration/check.ts";
import { type AuthHandler, type ManagingVisit, managing, type Visit } from "../visit.ts";
import { admissionOf } from "./admitted.ts";
import { evictRun, revokeRunRows } from "./earlier.ts";

type Args = Parameters<AuthHandler<typeof runRevoke>>[0]["args"];

export const handleRunRevoke: AuthHandler<typeof runRevoke> = async (given) => {
  const visit = managing(given);
  const { args, context } = visit;
  const { runId, reason } = args.revoke;
  const admission = await admissionOf(visit, runId, args.instanceId);
  assertMayRevoke(visit, admission.value.caller.owner);
  const manager = await managerOf(visit);
  await checkRegistration(visit, manager);
  const marker: Revocation = {
    version: 1,
    runId,
    reason,
    by: principalOf(visit.holder.owner, args.actor),
    revokedAt: context.ports.now(),
  };
  const stored = await mark(visit, runId, marker);
  const rows = await revokeRunRows(visit, args.instanceId, runId);
  const evicted = await evictRun(visit, manager.owner, runId);
  visit.note({
    revision: stored.revision,
    by: stored.value.by,
    first: stored.value.revokedAt === marker.revokedAt,
    rows: rows.length,
    evicted,
  });
  return { v: 1, kind: "manager-run-revoke", requestId: args.requestId, runId, revocation: stored.value };
};

/** Check 2: the run's own owner, or an administrator. */
function assertMayRevoke({ holder }: ManagingVisit<Args>, runOwner: Owner): void {
  const { granter, owner } = holder;
  const may =
    granter.kind === "actor" && (owner === runOwner || granter.row.value.scope.some((scope) => scope === "admin"));
  if (!may) throw new AuthorityError("permission-denied", "only the run's owner or an administrator revokes it");
}

/** Check 3: whose manager it is, since an administrator may act for it under another name. */
async function managerOf({ context, args, work }: ManagingVisit<Args>): Promise<{ owner: Owner; actor: string }> {
  const { instanceId } = args;
  const [gate, manager] = await Promise.all([
    context.store.read(epGateRows.key({ endpoint: MANAGER, instanceId }), work),
    context.store.read(managerRows.key({ instanceId }), work),
  ]);
  const principal = gate && splitPrincipal(gate.value.principal);
  const fits = principal?.actor === ROLES.serve.actor({ instanceId }) && manager?.value.owner === principal.owner;
  if (!principal || !manager || !fits) {
    throw new AuthorityError("failed-precondition", "this manager instance is not whole");
  }
  const { grantedBy } = manager.value;
  return { owner: principal.owner, actor: grantedBy.kind === "actor" ? grantedBy.actor : ASSIGNED_ACTOR };
}

/** Commit 1 and check 5: the first marker stands, whoever wrote it. */
async function mark({ context, work }: Visit, runId: RunId, marker: Revocation): Promise<Entry<Revocation>> {
  const key = revocationRows.key({ endpoint: MANAGER, runId });
  await context.store.commit([create(key, marker)], work).catch((error: unknown) => {
    if (!isAuthorityError(error, "conflict")) throw error;
  });
  const stored = await context.store.inspect(key, work);
  if (stored.state !== "row") throw internal(`no marker of ${runId} after its write: ${stored.state}`);
  return stored.entry;
}
