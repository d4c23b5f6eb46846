/** Containment: every row of a kind revoked, each session met ended, each holder verified gone (lifecycles §1.2). */
import { askEvict, type Eviction } from "../../../shared/custody.ts";
import { AuthorityError, isAuthorityError, unavailable } from "../../../shared/errors.ts";
import { STORE } from "../../../shared/limits.ts";
import type { Cred, EpCred } from "../../../shared/rows/credential.ts";
import { credRows } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { sessionRows } from "../../../shared/rows/session.ts";
import { type Stage, stageRows } from "../../../shared/rows/stage.ts";
import { type At, fenced, type Message, swap } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import { CredentialId, type Principal, SessionId, splitPrincipal, type Uid } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";

export interface Containment<R extends Cred | EpCred> {
  readonly opId: Uid;
  /** In every commit: the gate, or in a retirement the plane. */
  readonly fence: At<unknown>;
  /** Every row of the kind in whatever state, scanned after the freeze. */
  rows(work: Work): Promise<readonly Entry<R>[]>;
}

/** Revokes until a scan shows no active row; the rows as that scan showed them. The fence moved: `conflict`. */
export async function revokeRows<R extends Cred | EpCred>(
  context: AuthContext,
  containment: Containment<R>,
  work: Work,
): Promise<readonly Entry<R>[]> {
  for (;;) {
    const rows = await containment.rows(work);
    const active = rows.filter(({ value }) => value.state === "active");
    if (active.length === 0) return rows;
    const messages = (await Promise.all(active.map((row) => endOf(context, row, work)))).flat();
    const distinct = [...new Map(messages.map((message) => [message.key, message])).values()];
    for (let at = 0; at < distinct.length; at += STORE.containBatch) {
      try {
        await advance(context, containment, (stage) => stage, distinct.slice(at, at + STORE.containBatch), work);
      } catch (error) {
        // A row that moved was revoked by somebody else: the next scan shows it.
        if (lostOn(error, containment.fence.key) || !isAuthorityError(error, "conflict")) throw error;
      }
    }
  }
}

/** The revocation of one row, and of the pair where it is half of a session (state §5). */
async function endOf(context: AuthContext, row: Entry<Cred | EpCred>, work: Work): Promise<Message[]> {
  const revoked = [revocation(row)];
  const sessionId = sessionOf(row.value);
  if (sessionId === undefined) return revoked;
  const session = await context.store.read(sessionRows.key({ sessionId }), work);
  if (session?.value.state !== "active") return revoked;
  revoked.push(swap(session, { ...session.value, state: "retired" as const }));
  const uid = session.value.holder.lifecycleUid;
  const holder = await context.store.read(credRows.key({ uid, credentialId: holderCredential(sessionId) }), work);
  if (holder?.value.state === "active" && holder.key.key !== row.key.key) revoked.push(revocation(holder));
  return revoked;
}

const revocation = <R extends Cred | EpCred>(row: Entry<R>): Message =>
  swap(row, { ...row.value, state: "revoked" as const });

/** The row under the holder's uid that stands for its half of a session. */
export const holderCredential = (sessionId: SessionId): CredentialId => CredentialId.parse(`h-${sessionId}`);

function sessionOf(value: Cred): SessionId | undefined {
  const id = value.sourceChain[0]?.replace(/^session\./, "");
  return value.role.startsWith("session") && SessionId.is(id) ? id : undefined;
}

/** Moves the stage under the fence, together with other messages. */
export async function advance(
  context: AuthContext,
  { opId, fence }: Pick<Containment<Cred>, "opId" | "fence">,
  step: (stage: Stage) => Stage,
  along: readonly Message[],
  work: Work,
): Promise<void> {
  const key = stageRows.key({ opId });
  const stage = await context.store.read(key, work);
  if (!stage) throw new AuthorityError("conflict", "the operation has ended");
  await context.store.commit([fenced(key, step(stage.value), fence), ...along], work);
}

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
