/** What a list of channels may contain, beyond the grammar of its patterns (identity §6). */
import { AuthorityError } from "../../../shared/errors.ts";

/**
 * Refuses a pattern to read under that ends in `*`: the broker lets whoever may subscribe `team.*` subscribe `team.>`,
 * and make a consumer of it, as the one token stands for the other there. So the grant would give more than it says.
 */
export function assertReadable(allowSubscribe: readonly string[]): void {
  if (!allowSubscribe.some((pattern) => pattern === "*" || pattern.endsWith(".*"))) return;
  throw new AuthorityError("bad-request", "a channel to subscribe may not end in *, name it or end it in >");
}
