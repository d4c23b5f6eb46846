/** Sessions end with their `exp`; whoever holds the claim writes it down (state §5). */
import { isAuthorityError } from "../../../shared/errors.ts";
import { sessionRows } from "../../../shared/rows/session.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";
import type { Held } from "./held.ts";
import { sessionEnd } from "./session.ts";

export async function expireSessions(context: AuthContext, held: Held, work: Work): Promise<void> {
  const { entries, corrupt } = await held.hold(() => context.store.scan(sessionRows, {}, work));
  if (corrupt.length > 0) context.log.error({ keys: corrupt.slice(0, 8) }, "unreadable sessions");
  const now = context.ports.now();
  for (const session of entries.filter(({ value }) => value.state === "active" && value.exp <= now)) {
    held.proceed();
    try {
      await context.store.commit(await sessionEnd(context, session, "expired", work), work);
    } catch (error) {
      // Ended by somebody else meanwhile, or one of its rows is unreadable: neither concerns the next one.
      if (!isAuthorityError(error, "conflict") && !isAuthorityError(error, "internal")) throw error;
      context.log.warn({ sessionId: session.value.sessionId, err: error.reason }, "session not expired");
    }
  }
}
