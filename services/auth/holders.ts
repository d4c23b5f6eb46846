/** Who asks, as the operations see it (operations §1). */
import type { Actor as ActorRow } from "../../shared/rows/actor.ts";
import type { Assignment } from "../../shared/rows/assignment.ts";
import type { Entry } from "../../shared/rows/family.ts";
import type { EpGate } from "../../shared/rows/gate.ts";
import type { GrantedBy } from "../../shared/rows/members.ts";
import type { Actor, Owner, Principal, Uid } from "../../shared/tokens.ts";

/** The row on whose strength something is granted; read again wherever it decides. */
export type Granter =
  | { readonly kind: "actor"; readonly row: Entry<ActorRow> }
  | { readonly kind: "assignment"; readonly row: Entry<Assignment> };

/** Those who act for manager instances of one owner. */
export interface ManagingHolder {
  readonly kind: "human" | "manager" | "platform" | "supervisor";
  readonly owner: Owner;
  readonly granter: Granter;
  /** On a manager's own connection. */
  readonly instanceId?: Uid;
  /**
   * There, that instance's gate, asked for beside its row since nearly every operation needs it. As it was then: a
   * decision that is to be made again begins with another holder (`revisit`).
   */
  readonly gate?: Promise<Entry<EpGate> | undefined>;
}

export type Holder =
  | ManagingHolder
  | { readonly kind: "session-holder"; readonly owner: Owner; readonly actor: Actor; readonly uid: Uid }
  | { readonly kind: "requester"; readonly owner: Owner; readonly actor: Actor; readonly uid: Uid }
  | { readonly kind: "admin"; readonly owner: Owner; readonly row: Entry<ActorRow> }
  | { readonly kind: "operator" | "host"; readonly principal: Principal }
  | { readonly kind: "anyone" };

/** The value that credential rows and `manager.<iid>` carry. */
export function grantedByOf(granter: Granter): GrantedBy {
  if (granter.kind === "actor") {
    const { owner, actor, lifecycleUid } = granter.row.value;
    return { kind: "actor", owner, actor, lifecycleUid };
  }
  const { instanceId, assignmentRevision } = granter.row.value;
  return { kind: "assignment", instanceId, assignmentRevision };
}

/** Under an assignment a manager's requests bear this actor. */
export const ASSIGNED_ACTOR = "cli" as string as Actor;

/** The actor that a manager's requests and its proof K bear. */
export const actorOf = (granter: Granter): Actor =>
  granter.kind === "actor" ? granter.row.value.actor : ASSIGNED_ACTOR;

export const sameGranter = (one: GrantedBy, other: GrantedBy): boolean =>
  one.kind === "actor"
    ? other.kind === "actor" &&
      one.owner === other.owner &&
      one.actor === other.actor &&
      one.lifecycleUid === other.lifecycleUid
    : other.kind === "assignment" &&
      one.instanceId === other.instanceId &&
      one.assignmentRevision === other.assignmentRevision;
