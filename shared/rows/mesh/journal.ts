/** `P.wfj.<run>`: a run's journal, read as a whole or not at all (records §2). */
import Type, { type Static } from "typebox";
import { internal } from "../../errors.ts";
import { RunId } from "../../tokens.ts";
import { type Entry, family, type Key } from "../family.ts";
import { Count, closed, Ms, open, Text } from "../members.ts";

const common = { v: Type.Literal(1), run: RunId.schema, n: Count, at: Ms };

const ActivationRecord = closed({
  ...common,
  kind: Type.Literal("activation"),
  holder: Text,
  fencingToken: Count,
  epoch: Count,
  replayedTo: Count,
});
export type Activation = Static<typeof ActivationRecord>;

const StepRecord = closed({
  ...common,
  kind: Type.Literal("step"),
  entry: open({
    scope: Text,
    kind: Text,
    name: Type.Optional(Text),
    occurrence: Count,
    requestId: Text,
    state: Text,
    /** Only whether it is there is read. */
    hold: Type.Optional(Type.Unknown()),
    external: Type.Optional(open({ askToken: Type.Optional(Text) })),
  }),
});
export type Step = Static<typeof StepRecord>;

export const journalRows = family({
  stream: "journal",
  pattern: "{runId}",
  parts: { runId: RunId },
  schema: Type.Union([ActivationRecord, StepRecord]),
  agrees: (record, key) => record.run === key.runId,
});
type JournalRecord = Activation | Step;

export interface Journal {
  readonly steps: readonly Step[];
  /** `n` of the last record. */
  readonly last: number;
}

/** What reading a journal needs of the store: its records one after the other, from the leader. */
type Next = (key: Key<JournalRecord>, fromRevision: number) => Promise<Entry<JournalRecord> | undefined>;

/** The whole journal of a run, nothing where it has none; what is no journal is `internal`. */
export async function readJournal(runId: RunId, next: Next): Promise<Journal | undefined> {
  const key = journalRows.key({ runId });
  const steps: Step[] = [];
  let before: JournalRecord | undefined;
  let fencingToken = 0;
  for (let entry = await next(key, 1); entry; entry = await next(key, entry.revision + 1)) {
    const record = entry.value;
    const opens = record.kind === "activation" && record.replayedTo === 0;
    if (before ? record.n !== before.n + 1 : !opens) throw internal(`journal ${runId}: a gap before ${record.n}`);
    if (record.kind === "activation") {
      if (record.fencingToken < fencingToken) throw internal(`journal ${runId}: the fencing token falls`);
      fencingToken = record.fencingToken;
    } else {
      steps.push(record);
    }
    before = record;
  }
  return before && { steps, last: before.n };
}

/** The name under which a caller answers a step. */
export const stepKeyOf = ({ scope, kind, name, occurrence }: Step["entry"]): string =>
  `${scope}/${kind}${name === undefined ? "" : `:${name}`}#${occurrence}`;
