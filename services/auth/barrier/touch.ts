/** Moves the revision of every gate that an ended row fed, so that a mint which read that row loses its fence (state §4). */
import type { Entry } from "../../../shared/rows/family.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import type { Manager } from "../../../shared/rows/manager.ts";
import { touch } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import type { Work } from "../../../shared/work.ts";
import { type AuthContext, MANAGER } from "../context.ts";
import type { Barrier } from "./kinds.ts";
import { advance } from "./stage.ts";

export async function touchGates(
  context: AuthContext,
  barrier: Pick<Barrier<unknown>, "opId" | "fence">,
  managers: readonly Entry<Manager>[],
  work: Work,
): Promise<void> {
  for (const { value } of managers) await touchGate(context, barrier, value, work);
}

async function touchGate(
  context: AuthContext,
  barrier: Pick<Barrier<unknown>, "opId" | "fence">,
  { instanceId }: Manager,
  work: Work,
): Promise<void> {
  const key = epGateRows.key({ endpoint: MANAGER, instanceId });
  for (;;) {
    const gate = await context.store.read(key, work);
    if (!gate || gate.value.state === "retired") return;
    try {
      await advance(context, barrier, (stage) => stage, [touch(gate)], work);
      return;
    } catch (error) {
      // It moved by itself: what read the granting row before that may still be fenced on where it is now.
      if (lostOn(error, barrier.fence.key) || !lostOn(error, key)) throw error;
    }
  }
}
