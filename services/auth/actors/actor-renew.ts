/** Makes the next root credential of an incarnation; uid, epoch and grants stay (operations §10, identity §7). */
import { assertAttenuated } from "../../../shared/attenuation.ts";
import type { actorRenew } from "../../../shared/contracts/auth/actors/actor-renew.ts";
import type { Input } from "../../../shared/contracts/operation.ts";
import { AuthorityError, internal } from "../../../shared/errors.ts";
import { LIFE, RENEWAL } from "../../../shared/limits.ts";
import { newUid } from "../../../shared/ports.ts";
import { type Actor as ActorRow, actorRows } from "../../../shared/rows/actor.ts";
import { type Cred, credRows } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { epGateRows, type Gate, gateRows } from "../../../shared/rows/gate.ts";
import { type Head, headRows } from "../../../shared/rows/head.ts";
import { fenced, type Message, swap } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import { principalOf } from "../../../shared/tokens.ts";
import { parentOf } from "../agents/parents.ts";
import { MANAGER } from "../context.ts";
import { assertScope } from "../granters.ts";
import type { ManagingHolder } from "../holders.ts";
import type { Visit as AnyVisit, AuthHandler } from "../visit.ts";
import { rootOf } from "./activate.ts";

type Visit = AnyVisit<Input<typeof actorRenew>>;

const denied = (message: string): AuthorityError => new AuthorityError("permission-denied", message);

export const handleActorRenew: AuthHandler<typeof actorRenew> = async (visit) => {
  const { args } = visit;
  const { requestId, owner, actor, lifecycleUid } = args;
  const { exp, renewed } = await renew(visit);
  visit.note({ exp: Math.floor(exp / 1_000), renewed });
  return { requestId, owner, actor, lifecycleUid, exp, renewed };
};

async function renew(visit: Visit): Promise<{ exp: number; renewed: boolean }> {
  const { context, work } = visit;
  for (let tries = 1; ; tries += 1) {
    const incarnation = await current(visit, await renewable(visit));
    const now = context.ports.now();
    const { exp } = incarnation.root.value;
    if (exp - now > LIFE.rootMs - LIFE.rootRenewFromMs) return { exp, renewed: false };
    const root = rootOf(incarnation.row, newUid(context.ports), now);
    try {
      const [revision] = await context.store.commit(messages(incarnation, root), work);
      visit.note({ revision });
      return { exp: root.exp, renewed: true };
    } catch (error) {
      // Another renewal, or a revoke: decided again.
      if (!lostOn(error) || tries >= RENEWAL.tries) throw error;
    }
  }
}

/** Checks 1 and 2. */
async function renewable(visit: Visit): Promise<ActorRow> {
  const { args, context, holder, work } = visit;
  const { owner, actor } = args;
  const managed = holder.kind === "human" || holder.kind === "manager" ? holder : undefined;
  if (managed && managed.owner !== owner) throw denied("this actor is another owner's");
  const row = (await context.store.read(actorRows.key({ owner, actor }), work))?.value;
  if (!row) throw new AuthorityError("not-found", "there is no such actor");
  if (managed) assertOwn(managed, row);
  if (holder.kind === "manager") await assertNotEnded(visit, holder);
  if (row.state !== "active") throw denied("this actor is revoked");
  return row;
}

/** A person's own row, or an agent of the actor who granted the manager. */
function assertOwn({ kind, granter }: Extract<Visit["holder"], { granter: unknown }>, row: ActorRow): void {
  const by = granter.kind === "actor" ? granter.row.value : undefined;
  if (kind === "human") {
    if (row.owner !== by?.owner || row.actor !== by.actor) throw denied("a person renews the own actor alone");
    return;
  }
  assertScope(granter, "supervise");
  if (!by || row.parent !== principalOf(by.owner, by.actor)) throw denied("this agent is another actor's");
}

/** An instance that was ended renews nobody, though its own credential may stand for a while yet. */
async function assertNotEnded({ context, work }: Visit, { instanceId }: ManagingHolder): Promise<void> {
  if (instanceId === undefined) throw internal("a manager without an instance");
  const gate = await context.store.read(epGateRows.key({ endpoint: MANAGER, instanceId }), work);
  if (gate?.value.state === "retired") throw denied("this manager instance was ended");
}

interface Incarnation {
  readonly row: ActorRow;
  readonly head: Entry<Head>;
  readonly gate: Entry<Gate>;
  readonly root: Entry<Cred>;
}

/** Checks 3 to 5. */
async function current(visit: Visit, row: ActorRow): Promise<Incarnation> {
  const { args, context, work } = visit;
  const { owner, actor, lifecycleUid: uid } = args;
  const head = await context.store.read(headRows.key({ owner, actor }), work);
  if (row.lifecycleUid !== uid || head?.value.lifecycleUid !== uid) {
    throw new AuthorityError("expired", "this actor lives under another uid");
  }
  const { currentCredentialId: credentialId } = head.value;
  const [gate, root] = await Promise.all([
    context.store.read(gateRows.key({ uid }), work),
    context.store.read(credRows.key({ uid, credentialId }), work),
  ]);
  if (gate?.value.state !== "open") {
    throw new AuthorityError("failed-precondition", "this incarnation is ending");
  }
  if (root?.value.state !== "active" || root.value.exp <= context.ports.now()) {
    throw new AuthorityError("failed-precondition", "the root credential has lapsed or was revoked, grant anew");
  }
  if (row.kind === "managed") await assertAttenuated(row, parentOf(visit));
  return { row, head, gate, root };
}

/** Pure: *renew root* of state §4. */
function messages({ head, gate, root: former }: Incarnation, root: Cred): Message[] {
  const key = credRows.key({ uid: root.lifecycleUid, credentialId: root.credentialId });
  return [
    fenced(key, { ...root, generation: gate.value.generation }, gate),
    swap(head, { ...head.value, currentCredentialId: root.credentialId }),
    swap(former, { ...former.value, state: "revoked" as const }),
  ];
}
