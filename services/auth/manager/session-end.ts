/** Ends a session and both its halves in one commit; who ended it before, and how, is the answer (operations §6). */
import type { managerSessionEnd } from "../../../shared/contracts/auth/manager/session-end.ts";
import type { Output } from "../../../shared/contracts/operation.ts";
import { AuthorityError, isAuthorityError } from "../../../shared/errors.ts";
import { type Session, sessionRows } from "../../../shared/rows/session.ts";
import { principalOf } from "../../../shared/tokens.ts";
import { sessionEnd } from "../barrier/session.ts";
import type { Holder } from "../holders.ts";
import type { AuthHandler } from "../visit.ts";

type State = Output<typeof managerSessionEnd>["state"];

export const handleManagerSessionEnd: AuthHandler<typeof managerSessionEnd> = async (visit) => {
  const { context, args, holder, work } = visit;
  const { requestId, sessionId, reason } = args;
  visit.note({ reason });
  for (;;) {
    const session = await context.store.read(sessionRows.key({ sessionId }), work);
    if (!session) throw new AuthorityError("not-found", "there is no such session");
    if (!concerns(holder, session.value)) throw new AuthorityError("permission-denied", "this session is not yours");
    const { principal: target, lifecycleUid } = session.value.holder;
    visit.note({ target, lifecycleUid });
    const ended = endOf(session.value);
    if (ended) {
      visit.note({ replayed: true });
      return { v: 1, requestId, sessionId, state: ended };
    }
    try {
      // Nobody is evicted: both principals have other connections (state §5).
      const [revision] = await context.store.commit(await sessionEnd(context, session, "closed", work), work);
      visit.note({ revision });
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
