/** Who belongs to a manager instance: its five derived principals, and whoever holds a row of it (operations §7). */
import { actorsOf } from "../../../shared/credentials/roles.ts";
import { epCredRows } from "../../../shared/rows/credential.ts";
import { type Owner, type Principal, principalOf, type Uid } from "../../../shared/tokens.ts";
import { MANAGER } from "../context.ts";
import type { Visit } from "../visit.ts";

const derivedPrincipals = (owner: Owner, instanceId: Uid): Principal[] =>
  Object.values(actorsOf(instanceId)).map((actor) => principalOf(owner, actor));

export async function familyOf(
  { context, work }: Pick<Visit, "context" | "work">,
  owner: Owner,
  instanceId: Uid,
): Promise<ReadonlySet<Principal>> {
  const { entries, corrupt } = await context.store.scan(epCredRows, { endpoint: MANAGER, instanceId }, work);
  if (corrupt.length > 0) throw epCredRows.refusal(corrupt[0] ?? "", "garbled");
  return new Set([...derivedPrincipals(owner, instanceId), ...entries.map(({ value }) => value.holderPrincipal)]);
}
