/** The longest kind of barrier: the end of a lifecycle, fenced on the plane claim (lifecycles §1.2, state §4). */
import { interactiveRetireOpId, retireOpId } from "../../../shared/credentials/roles.ts";
import { internal } from "../../../shared/errors.ts";
import { BARRIER } from "../../../shared/limits.ts";
import { type Cred, credRows, type EpCred } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type Frontier, frontierRows } from "../../../shared/rows/frontier.ts";
import { type Gate, gateRows } from "../../../shared/rows/gate.ts";
import { type Head, headRows } from "../../../shared/rows/head.ts";
import type { Stage } from "../../../shared/rows/stage.ts";
import { create, swap } from "../../../shared/store/message.ts";
import { principalOf, splitPrincipal, type Triple, type Uid } from "../../../shared/tokens.ts";
import { ownWork, type Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";
import { drain } from "./drain.ts";
import { readFrontier } from "./frontier.ts";
import { grantedRows, managersOf } from "./granted.ts";
import type { Held } from "./held.ts";
import type { Barrier } from "./kinds.ts";
import { touchGates } from "./touch.ts";

export interface Retiring extends Triple {
  readonly opId: Uid;
  /** A person's actor may have granted; an agent's cannot. */
  readonly interactive: boolean;
}

/** Whose retirement a stage is of: its operation id follows from the uid and the kind of actor. */
export function retiringOf(stage: Stage): Retiring {
  const uid = gateRows.parts(stage.gate)?.uid;
  const opId = stage.opId as Uid;
  const interactive = uid !== undefined && opId === interactiveRetireOpId(uid);
  if (uid === undefined || !(interactive || opId === retireOpId(uid))) {
    throw internal(`stage ${opId} is no retirement of ${stage.gate}`);
  }
  return { ...splitPrincipal(stage.principal), uid, opId, interactive };
}

/** All but the freeze. */
export function retirement(context: AuthContext, held: Held, retiring: Retiring): Barrier<void> {
  const { owner, actor, uid, opId, interactive } = retiring;
  const granter = { kind: "actor" as const, owner, actor, lifecycleUid: uid };
  const fence = { opId, fence: held.entry };
  let streams: Frontier["streams"] | undefined;
  return {
    ...fence,
    kind: "retirement",
    work: () => ownWork(context.ports, BARRIER.stepMs, held.signal),
    hold: (believed) => held.hold(believed),
    proceed: () => held.proceed(),
    async touch(work) {
      if (!interactive) return;
      const managers = await held.hold(() => managersOf(context, granter, work));
      await touchGates(context, fence, managers, work);
    },
    async rows(work): Promise<Entry<Cred | EpCred>[]> {
      const own = await ownRows(context, uid, work);
      return interactive ? [...own, ...(await grantedRows(context, granter, work))] : own;
    },
    also: [principalOf(owner, actor)],
    drain: (work) => drain(context, { retiring, hold: (believed) => held.hold(believed) }, work),
    async frontier(work) {
      streams = await held.hold(() => readFrontier(context, work));
    },
    async finish(_contained, end, work) {
      if (!streams) throw internal(`retirement ${opId} without a frontier`);
      const { gate, head } = await frozen(context, retiring, work);
      const { op: _over, ...rest } = head.value;
      await end([
        create(frontierRows.key({ uid }), { lifecycleUid: uid, opId, streams }),
        swap(gate, { ...gate.value, state: "retired" as const }),
        swap(head, { ...rest, state: "retired" as const }),
      ]);
    },
  };
}

async function ownRows({ store }: AuthContext, uid: Uid, work: Work): Promise<Entry<Cred>[]> {
  const { entries, corrupt } = await store.scan(credRows, { uid }, work);
  if (corrupt.length > 0) throw credRows.refusal(corrupt[0] ?? "", "garbled");
  return entries;
}

/** Gate and head as the freeze left them. Anything else is a state that no commit makes. */
export async function frozen(
  { store }: Pick<AuthContext, "store">,
  { owner, actor, uid, opId }: Pick<Retiring, "owner" | "actor" | "uid" | "opId">,
  work: Work,
): Promise<{ readonly gate: Entry<Gate>; readonly head: Entry<Head> }> {
  const [gate, head] = await Promise.all([
    store.read(gateRows.key({ uid }), work),
    store.read(headRows.key({ owner, actor }), work),
  ]);
  const gateIsOurs = gate?.value.state === "frozen" && gate.value.op?.opId === opId;
  const headIsOurs =
    head?.value.state === "retiring" && head.value.lifecycleUid === uid && head.value.op?.opId === opId;
  if (!gate || !head || !gateIsOurs || !headIsOurs) {
    const seen = `gate ${gate?.value.state}, head ${head?.value.state}`;
    throw internal(`retirement ${opId} of ${principalOf(owner, actor)}: ${seen}`);
  }
  return { gate, head };
}
