/**
 * Every issuing operation's one way: gate and checks → granter and what no fence guards, while it signs → one commit →
 * what must still hold → release (operations §4, M; state §5). An operation says what to check and what to mint; it
 * cannot sign by itself, and what was signed for a refused one is dropped.
 */
import { atOnce } from "../../../shared/at-once.ts";
import { AuthorityError, isAuthorityError } from "../../../shared/errors.ts";
import { ISSUE, STORE } from "../../../shared/limits.ts";
import type { EpCred } from "../../../shared/rows/credential.ts";
import type { Entry, Key } from "../../../shared/rows/family.ts";
import type { EpGate } from "../../../shared/rows/gate.ts";
import { fenced, type Message, swap } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import type { Uid } from "../../../shared/tokens.ts";
import { ahead } from "../ahead.ts";
import { MANAGER } from "../context.ts";
import { recheckGranter } from "../granters.ts";
import { grantedByOf } from "../holders.ts";
import { type ManagingVisit, revisit } from "../visit.ts";
import { type Credential, entryOf, type Minted, mint, type Signed } from "./mint.ts";

/** What an operation's checks came to. */
export interface Plan {
  /** Read by the checks; the credentials' rows are fenced on it. */
  readonly gate: Entry<EpGate>;
  readonly credentials: readonly Credential[];
  /** Upper end of every life, Unix ms. */
  readonly boundMs?: number;
  /** Messages beside the credentials' rows; after them, as a fence stands before a write of its row. */
  readonly extra?: (minted: readonly Minted[]) => readonly Message[];
}

export interface Issuing<Args> {
  /** Runs the operation's own checks. Again, from the caller on, once, where the gate was only touched meanwhile. */
  plan(visit: ManagingVisit<Args>): Promise<Plan>;
  /**
   * Checks of what no fence guards, the last before the commit; granter and signing go on beside them. Once more where
   * those took their time.
   */
  beforeCommit?(visit: ManagingVisit<Args>): Promise<void>;
  /** Checks between commit and release: when one fails, the rows just made are revoked and nothing leaves. */
  after?(visit: ManagingVisit<Args>): Promise<void>;
  /** What a gate that moved is: `conflict`, and for an activation `expired`. */
  readonly moved?: "conflict" | "expired";
}

export interface Issued {
  readonly gate: Entry<EpGate>;
  readonly issuedAt: number;
  /** ms, the smallest of all. */
  readonly expiresAt: number;
  readonly credentials: { readonly [name: string]: Signed };
  readonly entries: readonly Entry<EpCred>[];
}

interface InstanceArgs {
  readonly instanceId: Uid;
}

export async function issue<Args extends InstanceArgs>(
  first: ManagingVisit<Args>,
  issuing: Issuing<Args>,
): Promise<Issued> {
  const { context, work } = first;
  let visit = first;
  for (let touched = false; ; ) {
    const plan = await issuing.plan(visit);
    const issuedAt = context.ports.now();
    // Asked for after the gate was read; it signs while the leaders' answers are on their way.
    const check = async () => issuing.beforeCommit?.(visit);
    const asked = context.ports.monotonic();
    const granted = ahead(recheckGranter(context.store, visit.holder, visit.args.instanceId, work));
    const checked = ahead(check());
    const signed = ahead(Promise.resolve().then(() => signAll(visit, plan)));
    await granted;
    await checked;
    const minted = await signed;
    // Where some answer was long in coming, what no fence guards may have moved since it was looked at.
    if (context.ports.monotonic() - asked > ISSUE.freshMs) await check();
    const rows = minted.map(({ row }) => fenced(row.key, row.value, plan.gate));
    try {
      const revisions = await context.store.commit([...rows, ...(plan.extra?.(minted) ?? [])], work);
      const entries = minted.map((one, index) => entryOf(one, revisions[index] ?? 0));
      const { processEpoch } = plan.gate.value;
      const roles = minted.map(({ row }) => row.value.role);
      visit.note({ roles, exp: smallest(minted), processEpoch, revision: revisions[0] });
      await release(visit, issuing, entries);
      return { gate: plan.gate, issuedAt, expiresAt: smallest(minted) * 1_000, credentials: namedBy(minted), entries };
    } catch (error) {
      if (!lostOn(error, plan.gate.key)) throw error;
      if (touched || !(await onlyTouched(visit, plan.gate))) throw moved(issuing.moved ?? "conflict");
      touched = true;
      visit = await revisit(visit);
    }
  }
}

function signAll(visit: ManagingVisit<InstanceArgs>, plan: Plan): Minted[] {
  const { context, args, holder } = visit;
  const grantedBy = grantedByOf(holder.granter);
  const instance = { endpoint: MANAGER, instanceId: args.instanceId, gate: plan.gate.value };
  const bounds = [...(plan.boundMs === undefined ? [] : [plan.boundMs]), ...assignmentEnd(holder)];
  return plan.credentials.map((wanted) => mint(context, instance, wanted, { grantedBy, boundMs: bounds }));
}

/** A supervisor's credentials end with its assignment. */
export function assignmentEnd({ granter }: ManagingVisit<unknown>["holder"]): number[] {
  if (granter.kind !== "assignment" || granter.row.value.kind !== "platform-supervisor") return [];
  return [granter.row.value.expiresAt];
}

/** A touch leaves the bytes and moves the revision: whoever granted may have gone, nothing else did. */
export async function onlyTouched(
  { context, work }: Pick<ManagingVisit<unknown>, "context" | "work">,
  before: { readonly key: Key<EpGate>; readonly value: EpGate | undefined },
): Promise<boolean> {
  const now = await context.store.read(before.key, work);
  return JSON.stringify(now?.value) === JSON.stringify(before.value);
}

const moved = (code: "conflict" | "expired"): AuthorityError =>
  new AuthorityError(code, "the registration moved meanwhile, ask again", { outcome: "not-executed" });

async function release<Args>(
  visit: ManagingVisit<Args>,
  issuing: Issuing<Args>,
  entries: readonly Entry<EpCred>[],
): Promise<void> {
  if (!issuing.after) return;
  try {
    await issuing.after(visit);
  } catch (error) {
    await revoke(visit, entries);
    throw error;
  }
}

/** Revokes rows in one commit; one that another request revoked meanwhile is what was wanted. */
export async function revoke(
  { context, work }: Pick<ManagingVisit<unknown>, "context" | "work">,
  entries: readonly Entry<EpCred>[],
): Promise<void> {
  let left = [...entries];
  while (left.length > 0) {
    try {
      await context.store.commit(
        left.map((entry) => swap(entry, { ...entry.value, state: "revoked" as const })),
        work,
      );
      return;
    } catch (error) {
      if (!isAuthorityError(error, "conflict")) throw error;
      const again = await atOnce(STORE.readsAtOnce, left, ({ key }) => context.store.read(key, work));
      left = again.filter((entry): entry is Entry<EpCred> => entry?.value.state === "active");
    }
  }
}

const smallest = (minted: readonly Minted[]): number => Math.min(...minted.map(({ signed }) => signed.exp));

const namedBy = (minted: readonly Minted[]): Record<string, Signed> =>
  Object.fromEntries(minted.map(({ name, signed }) => [name, signed]));
