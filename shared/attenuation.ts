/** A managed actor never holds more than the principal that spawned it (identity §6). */
import { AuthorityError } from "./errors.ts";
import { BEARER } from "./limits.ts";
import { contains } from "./patterns.ts";
import { type Actor, type Owner, type Principal, principalOf, splitPrincipal } from "./tokens.ts";

/** What the walk reads of an actor row. */
export interface Link {
  readonly owner: Owner;
  readonly actor: Actor;
  readonly state: "active" | "revoked";
  readonly scope: readonly string[];
  readonly allowSubscribe: readonly string[];
  readonly allowPublish: readonly string[];
  readonly role?: string;
  /** The principal that spawned it; absent for a person. */
  readonly parent?: Principal;
}

/** Reads an actor row fresh; `undefined` is proven absence, an unreadable store throws. */
export type ReadLink = (owner: Owner, actor: Actor) => Promise<Link | undefined>;

/**
 * Walks `parent` from a row up to an admin or a row without parent. Every link must exist, be active, have the same
 * owner and cover the row below it; covering is transitive, so no row is compared with more than one.
 * Throws `permission-denied` naming nobody; the reason is private.
 */
export async function assertAttenuated(row: Link, read: ReadLink): Promise<void> {
  const seen = new Set<string>([principalOf(row.owner, row.actor)]);
  let below = row;
  for (let hops = 0; below.parent !== undefined; hops += 1) {
    const { owner, actor } = splitPrincipal(below.parent);
    if (hops >= BEARER.maxHops) throw denied(below.parent, "too many hops");
    if (seen.has(below.parent)) throw denied(below.parent, "a cycle");
    seen.add(below.parent);
    if (owner !== row.owner) throw denied(below.parent, "another owner");
    const parent = await read(owner, actor);
    if (!parent) throw denied(below.parent, "no such row");
    if (parent.state !== "active") throw denied(below.parent, "not active");
    const excess = excessOf(below, parent);
    if (excess !== undefined) throw denied(below.parent, `does not cover ${excess}`);
    if (parent.scope.includes("admin")) return;
    below = parent;
  }
}

/** What a child holds beyond its parent, by the name of the member; `undefined` when it is covered. */
export function excessOf(child: Link, parent: Link): "scope" | "allowSubscribe" | "allowPublish" | "role" | undefined {
  if (!child.scope.every((scope) => parent.scope.includes(scope))) return "scope";
  if (!covered(child.allowSubscribe, parent.allowSubscribe)) return "allowSubscribe";
  if (!covered(child.allowPublish, parent.allowPublish)) return "allowPublish";
  if (child.role !== undefined && !parent.scope.includes(`role:${child.role}`)) return "role";
  return undefined;
}

/** Every pattern lies within one pattern of the parent: a union of several is never pieced together. */
const covered = (patterns: readonly string[], outer: readonly string[]): boolean =>
  patterns.every((pattern) => outer.some((wide) => contains(wide, pattern)));

const denied = (principal: Principal, why: string): AuthorityError =>
  new AuthorityError("permission-denied", "the parent chain does not hold", { reason: `parent ${principal}: ${why}` });
