/** Step 5: no obligation of a retiring lifecycle is left open; elapsed time settles none (lifecycles §3). */
import { AuthorityError, type ErrorDetail, isAuthorityError } from "../../../shared/errors.ts";
import { BARRIER } from "../../../shared/limits.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type Obligation, obligationRows } from "../../../shared/rows/mesh/obligation.ts";
import type { Uid } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";
import type { Barrier } from "./kinds.ts";
import { unsettled } from "./metrics.ts";
import type { Retiring } from "./retirement.ts";
import { type DrainContext, type Settling, settle } from "./settle.ts";
import { WhoIsLeft } from "./who-is-left.ts";

/** The obligations of a lifecycle that are neither rejected nor terminal, and the keys of those that are unreadable. */
export interface Open {
  readonly rows: readonly Entry<Obligation>[];
  readonly unreadable: readonly string[];
}

export async function openObligations({ store }: Pick<AuthContext, "store">, uid: Uid, work: Work): Promise<Open> {
  const { entries, corrupt } = await store.scan(obligationRows, { target: uid }, work);
  const rows = entries.filter(({ value }) => value.state === "provisional" || value.state === "accepted");
  return { rows, unreadable: corrupt };
}

/** Resolves once a whole scan shows nothing open; else `unavailable` with what is. */
export async function drain(
  context: DrainContext,
  { retiring, hold }: { readonly retiring: Retiring; readonly hold: Barrier<void>["hold"] },
  work: Work,
): Promise<void> {
  let open: Open = { rows: [], unreadable: [] };
  for (let pass = 0; pass < BARRIER.drainPasses; pass += 1) {
    open = await hold(() => openObligations(context, retiring.uid, work));
    if (open.rows.length === 0 && open.unreadable.length === 0) return;
    const settling: Settling = { context, retiring, left: new WhoIsLeft(context, work), work };
    let moved = 0;
    for (const row of open.rows) if (await settleOne(settling, row)) moved += 1;
    if (moved === 0) break;
  }
  tell(context, retiring.opId, open.unreadable);
  throw drainBlocked(retiring.opId, open);
}

/** One line whatever their number: anybody may have the broker put what is no row there, and each try would tell of all. */
function tell({ log }: DrainContext, opId: Uid, unreadable: readonly string[]): void {
  if (unreadable.length === 0) return;
  unsettled.inc({ why: "unreadable" }, unreadable.length);
  const keys = unreadable.slice(0, BARRIER.blockedRows);
  log.error({ opId, keys, more: unreadable.length - keys.length }, "unreadable obligations");
}

/** Whether the row moved. What contradicts itself stays as it is and keeps no other from being settled. */
async function settleOne(settling: Settling, row: Entry<Obligation>): Promise<boolean> {
  try {
    return (await settle(settling, row)) === "moved";
  } catch (error) {
    if (!isAuthorityError(error, "internal")) throw error;
    const { context, retiring } = settling;
    unsettled.inc({ why: "contradiction" });
    context.log.error({ opId: retiring.opId, key: row.key.key, err: error.reason }, "obligation not settled");
    return false;
  }
}

/** The retirement stays frozen and contained; the operator may end a row by hand (`drain-abandon`). */
const drainBlocked = (opId: Uid, open: Open): AuthorityError =>
  new AuthorityError("unavailable", "obligations of this lifecycle are not settled yet, ask again", {
    details: [blockedDetail(opId, open)],
    reason: `${open.rows.length} open and ${open.unreadable.length} unreadable obligations`,
    outcome: "unknown",
  });

/** As many rows as a reply has room for. */
export function blockedDetail(opId: Uid, { rows, unreadable }: Open): ErrorDetail {
  const all = [
    ...rows.map(({ key, value }) => ({
      key: key.key,
      state: value.state as string,
      ...("route" in value ? { route: value.route as string } : {}),
    })),
    ...unreadable.map((key) => ({ key, state: "unreadable" })),
  ];
  const named: typeof all = [];
  let chars = 0;
  for (const row of all) {
    chars += row.key.length;
    if (named.length === BARRIER.blockedRows || chars > BARRIER.blockedChars) break;
    named.push(row);
  }
  return { kind: "ai.cotal.auth.drain-blocked", opId, rows: named, more: all.length - named.length };
}
