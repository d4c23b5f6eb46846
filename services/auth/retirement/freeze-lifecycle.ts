/** *Freeze for retirement*: from its commit on the lifecycle is denied everything, whoever runs the rest (state §4). */
import { AuthorityError, internal } from "../../../shared/errors.ts";
import { type Actor as ActorRow, actorRows } from "../../../shared/rows/actor.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type Gate, gateRows } from "../../../shared/rows/gate.ts";
import { type Head, headRows } from "../../../shared/rows/head.ts";
import { type Stage, stageRows } from "../../../shared/rows/stage.ts";
import { type Message, swap } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import { type Principal, principalOf, type Triple, type Uid } from "../../../shared/tokens.ts";
import { freeze } from "../barrier/freeze.ts";
import { heldByOther } from "../barrier/resume.ts";
import type { Visit } from "../visit.ts";

export interface Retire extends Triple {
  readonly opId: Uid;
  /** Who asked, for the actor's row. */
  readonly by: Principal;
}

type Context = Pick<Visit, "context" | "work">;

interface Rows {
  readonly gate: Entry<Gate>;
  readonly head: Entry<Head> | undefined;
  readonly actor: Entry<ActorRow> | undefined;
  readonly stage: Entry<Stage> | undefined;
}

/** `retired` where it had ended already. Otherwise it is frozen by this operation, now or since earlier. */
export async function freezeLifecycle(visit: Context, retire: Retire): Promise<"frozen" | "retired"> {
  for (;;) {
    const rows = await readRows(visit, retire);
    const standing = standingOf(visit, retire, rows);
    if (standing !== "open") return standing;
    try {
      await commitFreeze(visit, retire, rows);
      return "frozen";
    } catch (error) {
      if (!lostOn(error)) throw error;
    }
  }
}

async function readRows({ context, work }: Context, { owner, actor, uid, opId }: Retire): Promise<Rows> {
  const { store } = context;
  const [gate, head, row, stage] = await Promise.all([
    store.read(gateRows.key({ uid }), work),
    store.read(headRows.key({ owner, actor }), work),
    store.read(actorRows.key({ owner, actor }), work),
    store.read(stageRows.key({ opId }), work),
  ]);
  if (!gate) throw new AuthorityError("not-found", "there is no such lifecycle");
  return { gate, head, actor: row, stage };
}

function standingOf({ context }: Context, retire: Retire, { gate, head, stage }: Rows): "open" | "frozen" | "retired" {
  const { state, op } = gate.value;
  if (
    stage &&
    (stage.value.gate !== gate.key.key || stage.value.principal !== principalOf(retire.owner, retire.actor))
  ) {
    throw new AuthorityError("conflict", "this operation is of another lifecycle");
  }
  if (op && op.opId !== retire.opId) {
    if (state === "frozen" && op.kind !== "retirement") throw heldByOther(context, op.opId, op.kind);
    throw opHeld(op.opId, op.kind);
  }
  const ofThis = head?.value.lifecycleUid === retire.uid ? head.value.state : undefined;
  const possible = { open: "active", frozen: "retiring", retired: "retired" }[state];
  // A retired lifecycle's alias may be another's by now; nothing else may differ, since no commit moves one alone.
  if (ofThis !== possible && !(state === "retired" && ofThis === undefined)) {
    throw internal(`gate ${gate.key.key} is ${state}, the head ${ofThis ?? "of another lifecycle"}`);
  }
  if (state === "frozen" && !stage) throw internal(`gate ${gate.key.key} is frozen without a stage`);
  return state;
}

/** Another operation holds or ended the lifecycle. */
export const opHeld = (opId: string, opKind: string): AuthorityError =>
  new AuthorityError("conflict", "another operation holds this lifecycle", {
    details: [{ kind: "ai.cotal.auth.op-held", opId, opKind }],
  });

async function commitFreeze({ context, work }: Context, retire: Retire, { gate, head, actor }: Rows): Promise<void> {
  const { opId, by } = retire;
  const op = { opId, kind: "retirement" as const };
  const along: Message[] = head ? [swap(head, { ...head.value, state: "retiring" as const, op })] : [];
  if (actor?.value.lifecycleUid === retire.uid && actor.value.state === "active") {
    const revokedAt = context.ports.now();
    along.push(swap(actor, { ...actor.value, state: "revoked" as const, revokedAt, revokedBy: by }));
  }
  await freeze(context, gate, op, principalOf(retire.owner, retire.actor), along, work);
  await context.afterStep?.({ kind: "retirement", opId, step: "freeze" });
}
