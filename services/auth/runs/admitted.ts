/** `Admitted(runId)`: this run was let in for this instance and not taken back (operations §5). */
import { AuthorityError } from "../../../shared/errors.ts";
import { type Admission, admissionRows, revocationRows } from "../../../shared/rows/admission.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import type { RunId, Uid } from "../../../shared/tokens.ts";
import { MANAGER } from "../context.ts";
import type { Visit } from "../visit.ts";

const denied = (): AuthorityError => new AuthorityError("permission-denied", "the run is not admitted here");

/** The admission alone, where a revoked run is still a run. */
export async function admissionOf(
  { context, work }: Pick<Visit, "context" | "work">,
  runId: RunId,
  instanceId: Uid,
): Promise<Entry<Admission>> {
  const row = await context.store.read(admissionRows.key({ endpoint: MANAGER, runId }), work);
  if (!row || row.value.space !== context.space || row.value.instanceId !== instanceId) throw denied();
  return row;
}

export async function admitted(
  visit: Pick<Visit, "context" | "work">,
  runId: RunId,
  instanceId: Uid,
): Promise<Entry<Admission>> {
  const [row] = await Promise.all([admissionOf(visit, runId, instanceId), notRevoked(visit, runId)]);
  return row;
}

/** Repeated after a commit: a marker that came meanwhile takes back what was just made. */
export async function notRevoked({ context, work }: Pick<Visit, "context" | "work">, runId: RunId): Promise<void> {
  const marker = await context.store.read(revocationRows.key({ endpoint: MANAGER, runId }), work);
  if (marker) throw new AuthorityError("permission-denied", "the run was revoked");
}
