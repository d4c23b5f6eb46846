/** The registration checks R and U: that this manager instance is the one that is registered now (operations §3). */

import { ROLES } from "../../../shared/credentials/roles.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { currentRegistrationProof, declarationProof, type Identities } from "../../../shared/proofs.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type EpGate, epGateRows } from "../../../shared/rows/gate.ts";
import { sameText } from "../../../shared/same-text.ts";
import {
  type AccountNkey,
  type Digest,
  type Owner,
  type Principal,
  principalOf,
  type Space,
  type Uid,
} from "../../../shared/tokens.ts";
import { type AuthContext, MANAGER } from "../context.ts";
import type { ManagingVisit } from "../visit.ts";

/** The manager envelope of operations §2, as far as the proofs read it. */
export interface ManagerArgs {
  readonly space: Space;
  readonly actor: string;
  readonly instanceId: Uid;
  readonly managerLifecycleUid: Uid;
  readonly identities: Identities;
}
export interface ProvenArgs extends ManagerArgs {
  readonly registrationProof: Digest;
  readonly accountPublicKey?: AccountNkey;
  readonly processEpoch?: number;
  readonly serveEpoch?: number;
}

/** The principal that serves an instance, and so the one its gate names. */
export const servePrincipal = (owner: Owner, instanceId: Uid): Principal =>
  principalOf(owner, ROLES.serve.actor({ instanceId }));

const denied = (message: string): AuthorityError => new AuthorityError("permission-denied", message);

/** R2 and R3, which U asks as well: a gate that is open and this owner's. */
async function openGate(visit: ManagingVisit<ManagerArgs>, owner: Owner): Promise<Entry<EpGate>> {
  const { context, args, holder, work } = visit;
  const key = epGateRows.key({ endpoint: MANAGER, instanceId: args.instanceId });
  const gate = await (holder.gate ?? context.store.read(key, work));
  if (gate?.value.state !== "open") {
    throw new AuthorityError("failed-precondition", "this manager instance is not registered and open");
  }
  if (gate.value.principal !== servePrincipal(owner, args.instanceId)) throw denied("this instance is another owner's");
  return gate;
}

/** Proof K over a gate, under the current key: what `activate` hands out. */
export const proofOver = (context: AuthContext, gate: EpGate, args: ManagerArgs, owner: Owner, actor: string): Digest =>
  currentRegistrationProof(coordinates(gate, args, owner, actor), context.data.proofKeys[0] ?? "") as Digest;

const coordinates = (gate: EpGate, args: ManagerArgs, owner: Owner, actor: string) => ({
  space: args.space,
  owner,
  actor,
  instanceId: args.instanceId,
  managerLifecycleUid: args.managerLifecycleUid,
  identities: args.identities,
  registrationRevision: gate.registrationRevision,
  processEpoch: gate.processEpoch,
});

/** R4: the epoch that a request names, where it names one, is the one under which the instance serves. */
export function assertEpoch(instanceId: Uid, { value }: Entry<EpGate>, claimed: number | undefined): void {
  const { processEpoch } = value;
  if (claimed === undefined || claimed === processEpoch) return;
  throw new AuthorityError("conflict", "this instance serves under another epoch", {
    details: [{ kind: "ai.cotal.auth.incarnation", instanceId, epoch: processEpoch }],
  });
}

/**
 * R1 to R5. `owner` and `actor` are the holder's, unless somebody else may act for the instance (`run-revoke`).
 * Returns the gate that the decision is fenced on.
 */
export async function checkRegistration(
  visit: ManagingVisit<ProvenArgs>,
  { owner, actor }: { owner: Owner; actor: string } = { owner: visit.holder.owner, actor: visit.args.actor },
): Promise<Entry<EpGate>> {
  const { context, args } = visit;
  if (args.accountPublicKey !== undefined && args.accountPublicKey !== context.data.account) {
    throw denied("this is another account");
  }
  const gate = await openGate(visit, owner);
  assertEpoch(args.instanceId, gate, args.processEpoch);
  assertEpoch(args.instanceId, gate, args.serveEpoch);
  const current = coordinates(gate.value, args, owner, actor);
  const proven = context.data.proofKeys.filter((key) =>
    sameText(args.registrationProof, currentRegistrationProof(current, key)),
  );
  if (proven.length === 0) throw denied("the registration proof does not match");
  return gate;
}

/** U over what is declared; then R2 and R3, since a computable proof shows no registration; then that there was one. */
export async function checkDeclaration(
  visit: ManagingVisit<ManagerArgs & { readonly registrationProof: Digest }>,
  contractArtifacts: readonly unknown[] = [],
): Promise<Entry<EpGate>> {
  const { args, holder } = visit;
  const expected = declarationProof({ ...args, owner: holder.owner, contractArtifacts });
  if (!sameText(args.registrationProof, expected)) throw denied("the declaration proof does not match");
  const gate = await openGate(visit, holder.owner);
  if (gate.value.registrationRevision === 0) {
    throw new AuthorityError("failed-precondition", "this instance has not registered yet");
  }
  return gate;
}
