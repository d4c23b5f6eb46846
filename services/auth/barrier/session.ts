/** A session ends as a pair: its row and both halves in one commit, whichever half was met (state §5). */
import { type Cred, credRows, type EpCred, epCredRows } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type Session, sessionRows } from "../../../shared/rows/session.ts";
import { type Message, swap } from "../../../shared/store/message.ts";
import { SessionId } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";

type Terminal = Exclude<Session["state"], "active">;

export const revocation = <R extends Cred | EpCred>(row: Entry<R>): Message =>
  swap(row, { ...row.value, state: "revoked" as const });

/** The commit *end* of an active session: its halves fall as far as they still stand. */
export async function sessionEnd(
  { store }: Pick<AuthContext, "store">,
  session: Entry<Session>,
  state: Terminal,
  work: Work,
): Promise<Message[]> {
  const { endpoint, serving, servingCredentialId, holder, holderCredentialId } = session.value;
  const [one, other] = await Promise.all([
    store.read(epCredRows.key({ endpoint, instanceId: serving.instanceId, credentialId: servingCredentialId }), work),
    store.read(credRows.key({ uid: holder.lifecycleUid, credentialId: holderCredentialId }), work),
  ]);
  return [
    swap(session, { ...session.value, state }),
    ...(one?.value.state === "active" ? [revocation(one)] : []),
    ...(other?.value.state === "active" ? [revocation(other)] : []),
  ];
}

/** The active session of which a row is a half. */
export async function sessionOf(
  { store }: Pick<AuthContext, "store">,
  { role, sourceChain }: Cred,
  work: Work,
): Promise<Entry<Session> | undefined> {
  if (!role.startsWith("session")) return undefined;
  const sessionId = sourceChain[0]?.replace(/^session\./, "");
  if (!SessionId.is(sessionId)) return undefined;
  const session = await store.read(sessionRows.key({ sessionId }), work);
  return session?.value.state === "active" ? session : undefined;
}
