/** Ends a session and both its halves in one commit; who ended it before, and how, is the answer (operations §6). */
import type { managerSessionEnd } from "../../../shared/contracts/auth/manager/session-end.ts";
import type { Output } from "../../../shared/contracts/operation.ts";
import { AuthorityError, isAuthorityError } from "../../../shared/errors.ts";
import { credRows, epCredRows } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type Session, sessionRows } from "../../../shared/rows/session.ts";
import { type Message, swap } from "../../../shared/store/message.ts";
import { principalOf } from "../../../shared/tokens.ts";
import type { Holder } from "../holders.ts";
import type { AuthHandler, Visit } from "../visit.ts";

type State = Output<typeof managerSessionEnd>["state"];

export const handleManagerSessionEnd: AuthHandler<typeof managerSessionEnd> = async (visit) => {
  const { context, args, holder, work } = visit;
  const { requestId, sessionId, reason } = args;
  visit.note({ sessionId, reason });
  for (;;) {
    const session = await context.store.read(sessionRows.key({ sessionId }), work);
    if (!session) throw new AuthorityError("not-found", "there is no such session");
    if (!concerns(holder, session.value)) throw new AuthorityError("permission-denied", "this session is not yours");
    const ended = endOf(session.value);
    if (ended) {
      visit.note({ replayed: true });
      return { v: 1, requestId, sessionId, state: ended };
    }
    try {
      await context.store.commit(await end(visit, session), work);
      return { v: 1, requestId, sessionId, state: "closed" };
    } catch (error) {
      // Issued again or ended meanwhile: what is there now ends, or has.
      if (!isAuthorityError(error, "conflict")) throw error;
    }
  }
};

/** Check 2: its holder at that uid, or the manager of its serving instance. */
function concerns(holder: Holder, { holder: held, serving }: Session): boolean {
  if (holder.kind === "manager") return holder.instanceId === serving.instanceId;
  if (holder.kind !== "session-holder") return false;
  return principalOf(holder.owner, holder.actor) === held.principal && holder.uid === held.lifecycleUid;
}

const endOf = ({ state }: Session): State | undefined => (state === "active" ? undefined : state);

/** The commit *end*: nobody is evicted, as both principals have other connections (state §5). */
async function end(
  { context, work }: Pick<Visit, "context" | "work">,
  session: Entry<Session>,
): Promise<readonly Message[]> {
  const { endpoint, serving, servingCredentialId, holder, holderCredentialId } = session.value;
  const servingKey = epCredRows.key({
    endpoint,
    instanceId: serving.instanceId,
    credentialId: servingCredentialId,
  });
  const holderKey = credRows.key({ uid: holder.lifecycleUid, credentialId: holderCredentialId });
  const [one, other] = await Promise.all([context.store.read(servingKey, work), context.store.read(holderKey, work)]);
  return [
    swap(session, { ...session.value, state: "closed" as const }),
    ...(one?.value.state === "active" ? [swap(one, { ...one.value, state: "revoked" as const })] : []),
    ...(other?.value.state === "active" ? [swap(other, { ...other.value, state: "revoked" as const })] : []),
  ];
}
