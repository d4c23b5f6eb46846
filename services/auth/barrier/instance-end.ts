/** The end of an endpoint instance for good: any replica runs it, fenced on the instance's own gate (state §4). */

import { instanceEndOpId } from "../../../shared/credentials/roles.ts";
import type { Eviction } from "../../../shared/custody.ts";
import { BARRIER } from "../../../shared/limits.ts";
import type { EpCred } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type EpGate, epGateRows } from "../../../shared/rows/gate.ts";
import { isEnded, stageRows } from "../../../shared/rows/stage.ts";
import { create, type Message, swap } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import type { EndpointLabel, Principal, Uid } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";
import { familyRows } from "../registration/registrar.ts";
import { opHeld } from "../retirement/freeze-lifecycle.ts";
import { evictReported, holdersOf } from "./evict.ts";
import { freeze, newStage } from "./freeze.ts";
import { gateFenced } from "./kinds.ts";
import { runBarrier } from "./run.ts";

export interface Ending {
  readonly endpoint: EndpointLabel;
  readonly instanceId: Uid;
  /** Of the gate that is made, retired, where there is none; so nobody can open one later. */
  readonly principal: Principal;
}

export interface EndedInstance {
  readonly opId: Uid;
  readonly revokedRows: number;
  /** So many as a report names at most; all were asked for. */
  readonly evictedPrincipals: Principal[];
  /** False fails nothing: nothing renews, and every `exp` bounds the rest. */
  readonly evictionVerified: boolean;
}

/** `conflict` where another operation ended the instance or is ending it. A repeat resumes, or tries the eviction again. */
export async function endInstance(context: AuthContext, ending: Ending, work: Work): Promise<EndedInstance> {
  const opId = instanceEndOpId(ending.instanceId);
  for (;;) {
    try {
      const gate = await endingGate(context, ending, opId, work);
      return gate.value.state === "retired"
        ? await evictAgain(context, ending, opId, work)
        : await complete(context, ending, opId, gate, work);
    } catch (error) {
      if (!lostOn(error)) throw error;
    }
  }
}

/** The gate held by this end, or retired by it. A registration's freeze is taken over. */
async function endingGate(
  context: AuthContext,
  { endpoint, instanceId, principal }: Ending,
  opId: Uid,
  work: Work,
): Promise<Entry<EpGate>> {
  const { store } = context;
  const key = epGateRows.key({ endpoint, instanceId });
  const gate = await store.read(key, work);
  const op = { opId, kind: "retirement" as const };
  if (!gate) {
    const value: EpGate = { ...NEVER_OPEN, op, principal };
    const stage = { ...newStage(context, { key, value }, op, principal), phase: "finished" as const };
    const [revision = 0] = await store.commit([create(key, value), create(stageRows.key({ opId }), stage)], work);
    return { key, value, revision };
  }
  const holder = gate.value.op;
  if (holder?.opId === opId) return gate;
  if (holder && !(gate.value.state === "frozen" && holder.kind === "registration")) {
    throw opHeld(holder.opId, holder.kind);
  }
  const along = holder ? await aborted(context, holder.opId as Uid, work) : [];
  const frozen = await freeze(context, gate, op, gate.value.principal, along, work);
  await context.afterStep?.({ kind: "instance-end", opId, step: "freeze" });
  return frozen;
}

const NEVER_OPEN = {
  state: "retired",
  generation: 0,
  processEpoch: 0,
  registrationRevision: 0,
  nameAuthorityRevision: 0,
} as const;

async function aborted({ store }: AuthContext, opId: Uid, work: Work): Promise<Message[]> {
  const stage = await store.read(stageRows.key({ opId }), work);
  return stage && !isEnded(stage.value) ? [swap(stage, { ...stage.value, phase: "aborted" as const })] : [];
}

async function complete(
  context: AuthContext,
  ending: Ending,
  opId: Uid,
  gate: Entry<EpGate>,
  work: Work,
): Promise<EndedInstance> {
  const { rows, principals, evictions } = await runBarrier(context, {
    ...gateFenced(work),
    kind: "instance-end",
    opId,
    fence: gate,
    rows: (of) => allRows(context, ending, of),
    async finish(_contained, end) {
      await end([swap(gate, { ...gate.value, state: "retired" as const })]);
    },
  });
  return answer(opId, rows.length, principals, evictions);
}

/** What the operation has done already, and its eviction once more. */
async function evictAgain(context: AuthContext, ending: Ending, opId: Uid, work: Work): Promise<EndedInstance> {
  const rows = await allRows(context, ending, work);
  const stage = await context.store.read(stageRows.key({ opId }), work);
  const principals = [...new Set([...(stage?.value.evicted ?? []), ...holdersOf(rows)])];
  return answer(opId, rows.length, principals, await evictReported(context, principals, BARRIER.endEvictMs, work));
}

const allRows = (context: AuthContext, { endpoint, instanceId }: Ending, work: Work): Promise<Entry<EpCred>[]> =>
  familyRows(context, { endpoint, instanceId, contains: "all" }, work);

const answer = (
  opId: Uid,
  revokedRows: number,
  principals: readonly Principal[],
  evictions: readonly Eviction[],
): EndedInstance => ({
  opId,
  revokedRows,
  evictedPrincipals: principals.slice(0, BARRIER.reported),
  evictionVerified: evictions.every(({ verifiedGone }) => verifiedGone),
});
