/** A barrier's stage: how far it has come, and what carries the fence in each of its commits (state §4). */
import { AuthorityError, internal } from "../../../shared/errors.ts";
import { BARRIER } from "../../../shared/limits.ts";
import { isEnded, type Stage, stageRows } from "../../../shared/rows/stage.ts";
import { fenced, type Message } from "../../../shared/store/message.ts";
import type { Principal } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";
import type { Barrier } from "./kinds.ts";

/** Moves the stage under the fence, together with other messages; gives their revisions. */
export async function advance(
  { store }: Pick<AuthContext, "store">,
  { opId, fence }: Pick<Barrier<unknown>, "opId" | "fence">,
  step: (stage: Stage) => Stage,
  along: readonly Message[],
  work: Work,
): Promise<number[]> {
  const key = stageRows.key({ opId });
  const stage = await store.read(key, work);
  if (!stage) throw internal(`no ${key.key} beside a frozen gate`);
  if (isEnded(stage.value)) throw new AuthorityError("conflict", "the operation has ended");
  const [, ...revisions] = await store.commit([fenced(key, step(stage.value), fence), ...along], work);
  return revisions;
}

/** A stage that reports these principals, too; more than fit are left out, since it is a report and no proof. */
export const reporting = (stage: Stage, principals: readonly Principal[]): Stage => ({
  ...stage,
  evicted: [...new Set([...stage.evicted, ...principals])].slice(0, BARRIER.reported),
});

/** Phases go forward only: who runs a barrier again meets a later one. */
export const reached = (stage: Stage, phase: "contained" | "drained"): Stage =>
  stage.phase === "drained" ? stage : { ...stage, phase };
