/** The two proofs of a manager (operations §3): U binds what is declared, K that the live registration is its own. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";

export const IDENTITY_ROLES = ["supervisor", "executor", "serve", "goalWriter", "sessionLedger"] as const;
export type IdentityRole = (typeof IDENTITY_ROLES)[number];
export type Identities = { readonly [R in IdentityRole]: { readonly id: string } };

const ACTOR_PREFIX: Record<IdentityRole, string> = {
  supervisor: "manager_",
  executor: "manager_exec_",
  serve: "manager_serve_",
  goalWriter: "manager_goal_",
  sessionLedger: "manager_session_",
};

const CURRENT_REGISTRATION = "cotal/manager-current-registration/v1";

/** Derived, never sent; in the order of `identities`. */
export const derivedActors = (instanceId: string): Record<IdentityRole, string> => ({
  supervisor: ACTOR_PREFIX.supervisor + instanceId,
  executor: ACTOR_PREFIX.executor + instanceId,
  serve: ACTOR_PREFIX.serve + instanceId,
  goalWriter: ACTOR_PREFIX.goalWriter + instanceId,
  sessionLedger: ACTOR_PREFIX.sessionLedger + instanceId,
});

/** Rebuilt in the order that both proofs hash. */
const orderedIdentities = (given: Identities): Identities => ({
  supervisor: { id: given.supervisor.id },
  executor: { id: given.executor.id },
  serve: { id: given.serve.id },
  goalWriter: { id: given.goalWriter.id },
  sessionLedger: { id: given.sessionLedger.id },
});

export interface Declaration {
  readonly space: string;
  readonly owner: string;
  readonly instanceId: string;
  readonly managerLifecycleUid: string;
  readonly identities: Identities;
  /** As received and in request order; `[]` outside `activate`. */
  readonly contractArtifacts?: readonly unknown[];
}

/** Proof U: anyone can compute it, so it authenticates nobody. */
export function declarationProof(declared: Declaration): string {
  const { space, owner, instanceId, managerLifecycleUid: lifecycleUid, identities, contractArtifacts = [] } = declared;
  const text = JSON.stringify({
    v: 1,
    space,
    owner,
    instanceId,
    lifecycleUid,
    actors: derivedActors(instanceId),
    identities: orderedIdentities(identities),
    artifactDigests: contractArtifacts.map((artifact) => sha256(JSON.stringify(artifact))),
  });
  return sha256(text);
}

export interface CurrentRegistration extends Omit<Declaration, "contractArtifacts"> {
  readonly actor: string;
  /** Both from the live gate: a move of either retires every older proof. */
  readonly registrationRevision: number;
  readonly processEpoch: number;
}

/** Proof K under one key: the text of the data account's signing seed, not decoded. */
export function currentRegistrationProof(current: CurrentRegistration, seedText: string): string {
  const { space, owner, actor, instanceId, managerLifecycleUid: lifecycleUid, identities } = current;
  const text = JSON.stringify({
    v: 1,
    kind: "manager-current-registration",
    space,
    owner,
    actor,
    instanceId,
    lifecycleUid,
    actors: derivedActors(instanceId),
    identities: orderedIdentities(identities),
    registrationRevision: current.registrationRevision,
    processEpoch: current.processEpoch,
  });
  const mac = createHmac("sha256", seedText).update(`${CURRENT_REGISTRATION}\0${text}`).digest("hex");
  return `sha256:${mac}`;
}

/** Constant-time comparison of two proofs. */
export function sameProof(given: string, expected: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}

const sha256 = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`;
