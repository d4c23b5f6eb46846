/** Step 1 of every barrier: the gate is frozen by one operation, whose stage says how far it has come (state §4). */
import type { Entry } from "../../../shared/rows/family.ts";
import type { EpGate, Gate } from "../../../shared/rows/gate.ts";
import type { Op } from "../../../shared/rows/members.ts";
import { type Stage, stageRows } from "../../../shared/rows/stage.ts";
import { create, type Message, swap } from "../../../shared/store/message.ts";
import type { Principal, Uid } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";

/** Commits the freeze together with what must go with it, and gives the frozen gate. Lost: `conflict`. */
export async function freeze<G extends Gate | EpGate>(
  context: Pick<AuthContext, "store" | "startedBy" | "ports">,
  gate: Entry<G>,
  op: Op,
  principal: Principal,
  along: readonly Message[],
  work: Work,
): Promise<Entry<G>> {
  const value: G = { ...gate.value, state: "frozen", op };
  const stage = create(stageRows.key({ opId: op.opId as Uid }), newStage(context, gate, op, principal));
  const revisions = await context.store.commit([swap(gate, value), stage, ...along], work);
  return { key: gate.key, value, revision: revisions[0] ?? 0 };
}

/** The stage as a freeze of this gate writes it. */
export const newStage = (
  { startedBy, ports }: Pick<AuthContext, "startedBy" | "ports">,
  gate: Pick<Entry<Gate | EpGate>, "key" | "value">,
  op: Op,
  principal: Principal,
): Stage => ({
  v: 1,
  opId: op.opId,
  kind: op.kind,
  gate: gate.key.key,
  fromGeneration: gate.value.generation,
  principal,
  evicted: [],
  startedBy,
  at: ports.now(),
  phase: "frozen",
});
