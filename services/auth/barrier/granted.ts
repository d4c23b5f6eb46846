/** What a person's actor had granted: the managers it stands behind, and the rows issued on its behalf (state §4). */
import { type EpCred, epCredRows } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { byManagerRows, type Manager, managerRows } from "../../../shared/rows/manager.ts";
import type { GrantedBy } from "../../../shared/rows/members.ts";
import type { Owner, Uid } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import { type AuthContext, MANAGER } from "../context.ts";
import { sameGranter } from "../holders.ts";

export type ActorGrant = Extract<GrantedBy, { kind: "actor" }>;

type Context = Pick<AuthContext, "store">;

/** Every `manager.<iid>` that names the actor as its granter. */
export async function managersOf(context: Context, granter: ActorGrant, work: Work): Promise<Entry<Manager>[]> {
  const { entries, corrupt } = await context.store.scan(managerRows, {}, work);
  for (const key of corrupt) await refuseIfOf(context, granter.owner, key, managerRows, work);
  return entries.filter(({ value }) => sameGranter(value.grantedBy, granter));
}

/** Every credential row under a manager's instance that was issued on the actor's behalf, in whatever state. */
export async function grantedRows(context: Context, granter: ActorGrant, work: Work): Promise<Entry<EpCred>[]> {
  const { entries, corrupt } = await context.store.scan(epCredRows, { endpoint: MANAGER }, work);
  for (const key of corrupt) await refuseIfOf(context, granter.owner, key, epCredRows, work);
  return entries.filter(({ value }) => value.grantedBy !== undefined && sameGranter(value.grantedBy, granter));
}

/** A row that cannot be read fails only those whom it may concern: a granter has managers of the own owner alone. */
async function refuseIfOf(
  { store }: Context,
  owner: Owner,
  key: string,
  family: {
    parts(key: string): { readonly instanceId: Uid } | undefined;
    refusal(key: string, fault: "garbled"): Error;
  },
  work: Work,
): Promise<void> {
  const parts = family.parts(key);
  if (parts && !(await store.read(byManagerRows.key({ owner, instanceId: parts.instanceId }), work))) return;
  throw family.refusal(key, "garbled");
}
