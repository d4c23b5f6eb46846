/** Whether accepted work has come to its end: a fact that says so of this very request (records §3). */
import { digestOf } from "../../../shared/canonical.ts";
import { internal } from "../../../shared/errors.ts";
import { decisionFacts, effectFacts, goalFacts, poolFacts } from "../../../shared/rows/mesh/facts.ts";
import {
  commitRecord,
  type FactObligation,
  type obligationRows,
  type SelfObligation,
} from "../../../shared/rows/mesh/obligation.ts";
import type { Command } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";

/** Whose request an obligation is of. */
export type Asked = NonNullable<ReturnType<typeof obligationRows.parts>>;

type Context = Pick<AuthContext, "store">;
type Claimed = Pick<FactObligation, "fingerprint" | "sourceSeq">;

/** Caller and id are part of a fact's key, and readable only where the fact repeats them. */
const isOf = (fact: Claimed, { fingerprint, sourceSeq }: Claimed): boolean =>
  fact.fingerprint === fingerprint && fact.sourceSeq === sourceSeq;

/** Of an accepted decision: its effect, its goal's result, or its pool's end. Bytes on the subject alone prove nothing. */
export async function endIsProven(
  { store }: Context,
  asked: Asked,
  obligation: FactObligation,
  work: Work,
): Promise<boolean> {
  const { endpoint, owner, actor, uid, id } = asked;
  const of = { endpoint, owner, actor, uid };
  const { route } = obligation;
  if (route !== "effects") {
    const pool = route.slice("pool.".length) as Command;
    const fact = await store.read(poolFacts.key({ ...of, pool, id }), work);
    return fact !== undefined && isOf(fact.value, obligation);
  }
  const effect = await store.read(effectFacts.key({ ...of, id }), work);
  if (effect && isOf(effect.value, obligation)) return true;
  const decision = await store.read(decisionFacts.key({ ...of, id }), work);
  if (decision?.value.decision !== "accepted" || !isOf(decision.value, obligation)) return false;
  const { goalId } = decision.value.request;
  if (goalId === undefined) return false;
  const result = await store.read(goalFacts.key({ ...of, goalId }), work);
  if (!result) return false;
  const { value } = result;
  // A tombstone keeps neither the request's id nor its sequence.
  return "sourceSeq" in value
    ? value.id === id && isOf(value, obligation)
    : value.fingerprint === obligation.fingerprint;
}

/** Of a decision that is a record: written as decided, or superseded by a later write. The value is never applied here. */
export async function recordIsWritten(
  { store }: Context,
  { commitKey, commitBaseRevision, commitDigest }: SelfObligation,
  work: Work,
): Promise<boolean> {
  const key = commitRecord(commitKey);
  if (!key) throw internal(`no record ${commitKey}`);
  const record = await store.read(key, work);
  if (!record) return false;
  return record.revision > commitBaseRevision || digestOf(record.value) === commitDigest;
}
