/** Lists actors by key, in pages (operations §10). */
import type { actorList } from "../../../shared/contracts/auth/actors/actor-list.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { ARGUMENT } from "../../../shared/limits.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import type { AuthHandler } from "../visit.ts";

export const handleActorList: AuthHandler<typeof actorList> = async ({ args, holder, context, work }) => {
  const { requestId, kind, after = "" } = args;
  if (holder.kind === "admin" && args.owner !== undefined && args.owner !== holder.owner) {
    throw new AuthorityError("permission-denied", "an administrator lists the own owner's actors only");
  }
  const owner = holder.kind === "admin" ? holder.owner : args.owner;
  const { entries, corrupt } = await context.store.scan(actorRows, owner === undefined ? {} : { owner }, work);
  if (corrupt.length > 0) context.log.error({ keys: corrupt.slice(0, 8) }, "unreadable actor rows");
  const listed = entries
    .filter(({ key, value }) => key.key > after && (kind === undefined || value.kind === kind))
    .sort((one, other) => (one.key.key < other.key.key ? -1 : 1));
  const actors = fitting(listed.slice(0, ARGUMENT.page).map(({ value: { tokenHash: _secret, ...row } }) => row));
  const last = listed[actors.length - 1];
  return { requestId, actors, ...(listed.length > actors.length && last ? { next: last.key.key } : {}) };
};

/** As many as fit into an answer that every broker admits: three lists of 64 long names are 35 KB. */
function fitting<R>(rows: R[]): R[] {
  let bytes = 0;
  const tooMuch = rows.findIndex((row) => {
    bytes += Buffer.byteLength(JSON.stringify(row)) + 1;
    return bytes > ARGUMENT.pageBytes;
  });
  return tooMuch < 0 ? rows : rows.slice(0, Math.max(1, tooMuch));
}
