/** Step 4: nobody is connected any more under what was revoked (lifecycles §1.2, §2). */
import { askEvict, type Eviction } from "../../../shared/custody.ts";
import { unavailable } from "../../../shared/errors.ts";
import type { Cred, EpCred } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type Principal, splitPrincipal } from "../../../shared/tokens.ts";
import { Effects, timeLeft, type Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";

/** Who held these rows; a person's hand on a run has other connections and is left alone. */
export const holdersOf = (rows: readonly Entry<Cred | EpCred>[]): Principal[] => [
  ...new Set(rows.filter(({ value }) => value.role !== "runOperator").map(({ value }) => value.holderPrincipal)),
];

/** Every principal verified gone under a complete sweep, or `unavailable`: no timeout and no override changes that. */
export async function evictVerified(
  context: AuthContext,
  principals: readonly Principal[],
  work: Work,
): Promise<readonly Eviction[]> {
  if (principals.length === 0) return [];
  const evictions = await askEvict(context.peers, principals, work, context.ports);
  const left = evictions.filter(({ verifiedGone }) => !verifiedGone);
  if (left.length > 0) {
    const names = left.map(({ principal, note }) => `${splitPrincipal(principal).actor}: ${note ?? "still connected"}`);
    throw unavailable(`not verified gone: ${names.slice(0, 4).join("; ")}`);
  }
  return evictions;
}

/** An eviction that fails nothing, and leaves time to answer. */
export async function evictReported(
  context: AuthContext,
  principals: readonly Principal[],
  ms: number,
  work: Work,
): Promise<readonly Eviction[]> {
  if (principals.length === 0) return [];
  const { ports, peers, log } = context;
  const deadline = ports.monotonic() + Math.min(ms, timeLeft(work, ports) / 2);
  const evictions = await askEvict(peers, principals, { ...work, effects: new Effects(), deadline }, ports);
  const left = evictions.filter(({ verifiedGone }) => !verifiedGone);
  if (left.length > 0) log.warn({ left: left.slice(0, 8) }, "not verified gone");
  return evictions;
}
