/** Settles one obligation by what is proven about it, row for row of the chapter's table (lifecycles §3). */
import { internal } from "../../../shared/errors.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { decisionFacts, type RejectionFact } from "../../../shared/rows/mesh/facts.ts";
import {
  type FactObligation,
  type Obligation,
  obligationRows,
  type SelfObligation,
} from "../../../shared/rows/mesh/obligation.ts";
import { create, swap } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import { principalOf } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";
import { DRAIN_STAGES } from "./drain-stage.ts";
import { type Asked, endIsProven, recordIsWritten } from "./proof.ts";
import type { Retiring } from "./retirement.ts";
import type { WhoIsLeft } from "./who-is-left.ts";

export type DrainContext = Pick<AuthContext, "store" | "ports" | "log">;

export interface Settling {
  readonly context: DrainContext;
  readonly retiring: Retiring;
  readonly left: WhoIsLeft;
  readonly work: Work;
}

/** `pending`: nothing proves anything about the row. `internal`: what is stored contradicts it. */
export async function settle(settling: Settling, row: Entry<Obligation>): Promise<"moved" | "pending"> {
  const { value } = row;
  const asked = obligationRows.parts(row.key.key);
  if (!asked || !("decision" in value)) throw internal(`obligation ${row.key.key} is none to settle`);
  if (value.state === "provisional") {
    // A decision that is itself a record was not made while its row says so.
    const decided = value.decision === "self" ? "rejected" : await decide(settling, asked, value);
    return decided === "pending" ? decided : move(settling, row, { ...value, state: decided });
  }
  if (await isDone(settling, asked, value)) return move(settling, row, { ...value, state: "terminal" });
  const owners = [settling.retiring.owner, asked.owner];
  if (await settling.left.nobody(asked.endpoint, owners)) {
    settling.context.log.warn(
      { opId: settling.retiring.opId, key: row.key.key },
      "obligation abandoned: nobody is left",
    );
    return move(settling, row, { ...value, state: "terminal", outcome: "abandoned" });
  }
  return later(settling, row);
}

const isDone = ({ context, work }: Settling, asked: Asked, value: FactObligation | SelfObligation) =>
  value.decision === "self" ? recordIsWritten(context, value, work) : endIsProven(context, asked, value, work);

/** Whoever wrote the row meanwhile decided better: the next pass shows what it says. */
async function move({ context, work }: Settling, row: Entry<Obligation>, next: Obligation): Promise<"moved"> {
  await context.store.commit([swap(row, next)], work).catch((error: unknown) => {
    if (!lostOn(error)) throw error;
  });
  return "moved";
}

/** Publishes a rejection where no decision stands yet; the first fact is the decision. */
async function decide(
  { context, work }: Settling,
  asked: Asked,
  { fingerprint, sourceSeq }: FactObligation,
): Promise<"rejected" | "accepted" | "pending"> {
  const { store, ports } = context;
  const { endpoint, owner, actor, uid, id } = asked;
  if ((await store.lastSeq("facts", work)) === undefined) return "pending"; // nobody would keep the fact
  const key = decisionFacts.key({ endpoint, owner, actor, uid, id });
  const rejection: RejectionFact = {
    v: 1,
    id,
    decision: "rejected",
    fingerprint,
    error: { code: "expired" },
    caller: { id: principalOf(owner, actor), lifecycleUid: uid },
    sourceSeq,
    ts: ports.now(),
  };
  try {
    await store.commit([create(key, rejection)], work);
    return "rejected";
  } catch (error) {
    if (!lostOn(error)) throw error;
  }
  const winner = await store.read(key, work);
  if (winner?.value.decision === "rejected") return "rejected";
  const same = winner?.value.fingerprint === fingerprint && winner.value.sourceSeq === sourceSeq;
  if (!same) throw internal(`decision ${key.key} is of another request`);
  return "accepted";
}

/** What is registered behind the seam; without a stage the row stays pending. */
async function later({ retiring, work }: Settling, row: Entry<Obligation>): Promise<"moved" | "pending"> {
  const stage = DRAIN_STAGES.find(({ accepts }) => accepts(row));
  if (!stage) return "pending";
  const signal = work.signal ?? new AbortController().signal;
  return (await stage.settle(row, retiring, retiring.opId, signal)) === "settled" ? "moved" : "pending";
}
