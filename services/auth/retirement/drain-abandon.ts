/** Ends by hand an obligation that nobody is left to settle, so that a retirement can finish (operations §9). */
import { sha256Hex } from "../../../shared/canonical.ts";
import type { drainAbandon } from "../../../shared/contracts/auth/retirement/drain-abandon.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import type { Entry, Key } from "../../../shared/rows/family.ts";
import { gateRows } from "../../../shared/rows/gate.ts";
import { type Obligation, obligationRows } from "../../../shared/rows/mesh/obligation.ts";
import { type Stage, stageRows } from "../../../shared/rows/stage.ts";
import { swap } from "../../../shared/store/message.ts";
import { rowOf } from "../../../shared/store/read.ts";
import { Uid } from "../../../shared/tokens.ts";
import type { AuthHandler } from "../visit.ts";

type Visit = Parameters<AuthHandler<typeof drainAbandon>>[0];

export const handleDrainAbandon: AuthHandler<typeof drainAbandon> = async (visit) => {
  const { args, context, work } = visit;
  const { requestId, opId, key } = args;
  visit.note({ key });
  await assertBlocking(visit, await stageOf(visit));
  const { row, before } = await lookedAt(visit);
  const answer = { requestId, opId, key, state: "terminal" as const, outcome: "abandoned" as const };
  if (before?.state === "terminal" && before.outcome === "abandoned") {
    visit.note({ replayed: true });
    return answer;
  }
  if (row.revision !== args.revision) throw new AuthorityError("conflict", "the obligation is at another revision");
  if (before?.state === "rejected" || before?.state === "terminal") {
    throw new AuthorityError("failed-precondition", "the obligation is settled already");
  }
  // Who it is of stands in the key; a garbled body says nothing more.
  const abandoned: Obligation =
    before && "decision" in before
      ? { ...before, state: "terminal", outcome: "abandoned" }
      : { state: "terminal", outcome: "abandoned", opId };
  const [revision] = await context.store.commit([swap(row, abandoned)], work);
  visit.note({ revision });
  return answer;
};

async function stageOf({ args, context, work }: Visit): Promise<Entry<Stage>> {
  const stage = await context.store.read(stageRows.key({ opId: args.opId }), work);
  if (!stage) throw new AuthorityError("not-found", "there is no such operation");
  return stage;
}

/** Check 2: only what a contained retirement waits for, under the gate that it holds. */
async function assertBlocking({ args, context, work }: Visit, { value: stage }: Entry<Stage>): Promise<void> {
  const uid = Uid.parse(args.key.split(".")[1]);
  const gateKey = gateRows.key({ uid });
  const contained = stage.kind === "retirement" && (stage.phase === "contained" || stage.phase === "drained");
  const gate = contained && stage.gate === gateKey.key ? await context.store.read(gateKey, work) : undefined;
  if (gate?.value.state !== "frozen" || gate.value.op?.opId !== args.opId) {
    throw new AuthorityError("failed-precondition", "no contained retirement of this lifecycle waits for it");
  }
}

/** The row as it stands, unreadable ones included, with the digest of its bytes in the log. */
async function lookedAt({ args, context, work, note }: Visit): Promise<{
  readonly row: { readonly key: Key<Obligation>; readonly revision: number; readonly value?: Obligation };
  readonly before: Obligation | undefined;
}> {
  const key: Key<Obligation> = { stream: obligationRows.stream, family: obligationRows, key: args.key };
  const message = await context.store.next(key.stream, key.key, 1, work);
  if (!message) throw new AuthorityError("not-found", "there is no such obligation");
  const found = rowOf(key, message);
  note({ was: `sha256:${sha256Hex(message.body)}`, revision: message.revision });
  const before = found.state === "row" ? found.entry.value : undefined;
  return { row: { key, revision: message.revision, ...(before ? { value: before } : {}) }, before };
}
