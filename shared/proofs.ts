/** The two proofs of a manager (operations §3): U binds what is declared, K that the live registration is its own. */
import { createHmac } from "node:crypto";
import { digestOfBytes } from "./canonical.ts";
import { actorsOf, type Identity } from "./credentials/roles.ts";
import type { Uid } from "./tokens.ts";

export type Identities = { readonly [I in Identity]: { readonly id: string } };

const CURRENT_REGISTRATION = "cotal/manager-current-registration/v1";

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
  readonly instanceId: Uid;
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
    actors: actorsOf(instanceId),
    identities: orderedIdentities(identities),
    artifactDigests: contractArtifacts.map((artifact) => digestOfBytes(JSON.stringify(artifact))),
  });
  return digestOfBytes(text);
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
    actors: actorsOf(instanceId),
    identities: orderedIdentities(identities),
    registrationRevision: current.registrationRevision,
    processEpoch: current.processEpoch,
  });
  const mac = createHmac("sha256", seedText).update(`${CURRENT_REGISTRATION}\0${text}`).digest("hex");
  return `sha256:${mac}`;
}
