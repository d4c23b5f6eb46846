/** The one commit that makes an incarnation, whoever grants it (state §4 *activate*, lifecycles §1.1). */
import { AuthorityError, unavailable } from "../../../shared/errors.ts";
import { LIFE, MANAGER as TRIES } from "../../../shared/limits.ts";
import { newUid } from "../../../shared/ports.ts";
import { type Actor as ActorRow, actorRows } from "../../../shared/rows/actor.ts";
import { type Cred, credRows } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type Gate, gateRows } from "../../../shared/rows/gate.ts";
import { type Head, headRows } from "../../../shared/rows/head.ts";
import { uidRows } from "../../../shared/rows/uid.ts";
import { type At, create, fenced, type Message, swap } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import { CredentialId, principalOf, type Uid } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";

/** What is granted, but for the uid that is drawn and the time of the commit. */
export type Grant = Omit<ActorRow, "ver" | "state" | "lifecycleUid" | "grantedAt">;

export interface Before {
  readonly actor: Entry<ActorRow> | undefined;
  readonly head: Entry<Head> | undefined;
}

/** Fences in place of the create expectation of rows that the fresh uid proves new. */
export interface ActivationFences {
  /** On the granter's row, carried by the root's message. */
  readonly root?: At<unknown>;
  /** On the manager's gate, carried by the lifecycle gate's message. */
  readonly gate?: At<unknown>;
}

export interface Activation {
  readonly grant: Grant;
  readonly managerInstance: string;
  readonly fences?: ActivationFences;
  /**
   * Reads both rows and decides whether this grant may be made: a row to answer with, or what it replaces.
   * Runs again where the commit was lost.
   */
  decide(): Promise<Decision>;
}

/** Fences of a decision stand in place of the activation's: they are as fresh as what was read for it. */
export type Decision = { readonly replay: Entry<ActorRow> } | (Before & { readonly fences?: ActivationFences });

export async function readBefore(
  context: AuthContext,
  grant: Pick<Grant, "owner" | "actor">,
  work: Work,
): Promise<Before> {
  const { owner, actor } = grant;
  const [row, head] = await Promise.all([
    context.store.read(actorRows.key({ owner, actor }), work),
    context.store.read(headRows.key({ owner, actor }), work),
  ]);
  return { actor: row, head };
}

/** `failed-precondition` where an operation still holds the alias: it is free once its head is retired. */
export function assertHeadFree(head: Entry<Head> | undefined): void {
  if (!head || head.value.state === "retired") return;
  const { op, lifecycleUid } = head.value;
  throw new AuthorityError("failed-precondition", "the former incarnation is not retired yet", {
    details: op
      ? [{ kind: "ai.cotal.auth.op-held", opId: op.opId, opKind: op.kind }]
      : [{ kind: "ai.cotal.auth.current-lifecycle", lifecycleUid }],
  });
}

/** The active row: the one that stood there already, or a new incarnation under a fresh uid. */
export async function activate(context: AuthContext, activation: Activation, work: Work): Promise<Entry<ActorRow>> {
  const { grant } = activation;
  let draws = 0;
  for (let tries = 0; ; tries += 1) {
    const decided = await activation.decide();
    if ("replay" in decided) return decided.replay;
    const uid = newUid(context.ports);
    const row: ActorRow = { ...grant, ver: 1, state: "active", lifecycleUid: uid, grantedAt: context.ports.now() };
    const holder = { owner: grant.owner, actor: grant.actor, uid };
    await context.mailbox.open(holder, grant.role, work);
    try {
      const [revision = 0] = await context.store.commit(messages(context, activation, decided, row), work);
      return { key: actorRows.key({ owner: grant.owner, actor: grant.actor }), value: row, revision };
    } catch (error) {
      if (!lostOn(error)) throw error; // it may have landed: then the durables are needed, else they are inert
      await context.mailbox.remove(holder, work).catch(() => {});
      if (lostOn(error, uidRows.key({ uid }))) {
        draws += 1;
        if (draws >= TRIES.uidTries) throw unavailable("every drawn uid was taken", error, "not-executed");
      } else if (tries + 1 >= TRIES.activationTries) throw error;
    }
  }
}

/** Pure: the five rows of an incarnation. */
export function messages(
  context: Pick<AuthContext, "ports">,
  { grant, managerInstance, fences: given }: Activation,
  { fences = given, ...before }: Exclude<Decision, { replay: unknown }>,
  row: ActorRow,
): Message[] {
  const { owner, actor, grantedBy } = grant;
  const uid = row.lifecycleUid;
  const root = rootOf(row, newUid(context.ports), context.ports.now());
  const gate: Gate = { lifecycleUid: uid, state: "open", generation: 1 };
  const head: Head = {
    owner,
    actor,
    lifecycleUid: uid,
    managerInstance,
    processEpoch: 1,
    state: "active",
    currentCredentialId: root.credentialId,
  };
  const gateKey = gateRows.key({ uid });
  const rootKey = credRows.key({ uid, credentialId: root.credentialId });
  return [
    fences?.root ? fenced(rootKey, root, fences.root) : create(rootKey, root),
    fences?.gate ? fenced(gateKey, gate, fences.gate) : create(gateKey, gate),
    create(uidRows.key({ uid }), { owner, actor, mintedBy: grantedBy }),
    before.actor ? swap(before.actor, row) : create(actorRows.key({ owner, actor }), row),
    before.head ? swap(before.head, head) : create(headRows.key({ owner, actor }), head),
  ];
}

/** The root credential of an incarnation: a row alone, whose id travels in each bearer (identity §7). */
export function rootOf(
  { owner, actor, lifecycleUid }: Pick<ActorRow, "owner" | "actor" | "lifecycleUid">,
  token: Uid,
  now: number,
): Cred {
  return {
    credentialId: CredentialId.parse(`root-${token}`),
    role: "root",
    holderPrincipal: principalOf(owner, actor),
    lifecycleUid,
    sourceChain: ["root"],
    generation: 1,
    state: "active",
    exp: now + LIFE.rootMs,
  };
}
