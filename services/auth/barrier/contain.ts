/** Containment, step 3: every row of a kind revoked, each session met ended (lifecycles §1.2). */
import { STORE } from "../../../shared/limits.ts";
import type { Cred, EpCred } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import type { Message } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import { CredentialId, type SessionId } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";
import type { Barrier } from "./kinds.ts";
import { revocation, sessionEnd, sessionOf } from "./session.ts";
import { advance } from "./stage.ts";

type Row = Entry<Cred | EpCred>;
type Context = Pick<AuthContext, "store" | "afterStep">;

/**
 * Revokes until a scan shows no active row; the rows as that scan showed them, and those that were revoked here.
 * The fence moved: `conflict`.
 */
export async function revokeRows(
  context: Context,
  barrier: Pick<Barrier<unknown>, "kind" | "opId" | "fence" | "rows" | "hold">,
  work: Work,
): Promise<{ rows: readonly Row[]; revoked: readonly Row[] }> {
  const revoked = new Map<string, Row>();
  for (;;) {
    const rows = await barrier.hold(() => barrier.rows(work));
    const active = rows.filter(({ value }) => value.state === "active");
    if (active.length === 0) return { rows, revoked: [...revoked.values()] };
    for (const messages of batchesOf(await endsOf(context, active, work))) {
      try {
        await advance(context, barrier, (stage) => stage, messages, work);
        await context.afterStep?.({ kind: barrier.kind, opId: barrier.opId, step: "revoke" });
      } catch (error) {
        // A row that moved was revoked by somebody else: the next scan shows it.
        if (lostOn(error, barrier.fence.key) || !lostOn(error)) throw error;
      }
    }
    for (const row of active) revoked.set(row.key.key, row);
  }
}

/** What must fall together: a row alone, or a session with both its halves. */
async function endsOf(context: Context, active: readonly Row[], work: Work): Promise<Message[][]> {
  const ends = new Map<string, Message[]>();
  for (const row of active) {
    const session = await sessionOf(context, row.value, work);
    if (!session) ends.set(row.key.key, [revocation(row)]);
    else ends.set(session.key.key, await sessionEnd(context, session, "retired", work));
  }
  // A half whose session stands is in the session's end, unless that names another row.
  const written = new Set([...ends.values()].flat().map(({ key }) => key));
  for (const row of active) if (!written.has(row.key.key)) ends.set(row.key.key, [revocation(row)]);
  return [...ends.values()];
}

/** Commits of at most 250 messages, no end split between two. */
function batchesOf(ends: readonly Message[][]): Message[][] {
  const batches: Message[][] = [];
  for (const end of ends) {
    const last = batches.at(-1);
    if (last && last.length + end.length <= STORE.containBatch) last.push(...end);
    else batches.push([...end]);
  }
  return batches;
}

/** The row under the holder's uid that stands for its half of a session. */
export const holderCredential = (sessionId: SessionId): CredentialId => CredentialId.parse(`h-${sessionId}`);
