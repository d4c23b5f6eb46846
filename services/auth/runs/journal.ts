/** Reads a run's own journal for what it can be asked, and the checkpoint that must agree (operations §5, records §2). */
import { AuthorityError } from "../../../shared/errors.ts";
import { checkpointRows } from "../../../shared/rows/mesh/checkpoint.ts";
import { type Journal, readJournal } from "../../../shared/rows/mesh/journal.ts";
import { runStatusRows } from "../../../shared/rows/mesh/run.ts";
import type { EnvelopeId, RunId } from "../../../shared/tokens.ts";
import { assertInTime } from "../../../shared/work.ts";
import { MANAGER } from "../context.ts";
import type { Visit } from "../visit.ts";
import { answerable } from "./token-rule.ts";

type Reading = Pick<Visit, "context" | "work">;

/** What somebody wants to answer: a step that waits, or with `amend` one that was answered. */
export interface Answers {
  readonly runId: RunId;
  readonly stepKey: string;
  readonly amend?: true;
}

const refused = (reason: string): AuthorityError =>
  new AuthorityError("failed-precondition", "the run's journal has no such step to answer", { reason });

/** The token under which the step is answered, if journal and checkpoint agree that it may be. */
export async function answerToken(reading: Reading, { runId, stepKey, amend }: Answers): Promise<EnvelopeId> {
  const journal = await wholeJournal(reading, runId);
  const step = answerable(journal.steps, stepKey);
  if (!step) throw refused("no record, or no token");
  const { token, pending } = step;
  if (pending === (amend === true)) throw refused(amend ? "still pending" : "not pending");
  const key = checkpointRows.key({ endpoint: MANAGER, token });
  const checkpoint = (await reading.context.store.read(key, reading.work))?.value;
  const fits = amend
    ? checkpoint?.state === "resumed" && checkpoint.settledAnswerId !== undefined
    : checkpoint?.state === "waiting";
  if (!fits) throw refused(`checkpoint ${checkpoint?.state ?? "absent"}`);
  return token;
}

/** The status first: a journal that ends below what it says has lost its end. */
async function wholeJournal({ context, work }: Reading, runId: RunId): Promise<Journal> {
  const { store, ports } = context;
  const status = await store.read(runStatusRows.key({ endpoint: MANAGER, runId }), work);
  const journal = await readJournal(runId, (key, fromRevision) => {
    assertInTime(work, ports);
    return store.nextRow(key, fromRevision, work);
  });
  if (!journal) throw refused("no journal");
  if (journal.last < (status?.value.journalHigh ?? 0)) throw refused("the journal ends below journalHigh");
  return journal;
}
