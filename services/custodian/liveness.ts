/** What one sweep proves of a principal, and of two connections. Unknown never counts as gone (lifecycles §2.4). */
import type { PrincipalLiveness } from "../../shared/custody.ts";
import type { Tuple } from "../../shared/nats/connect.ts";
import type { Principal } from "../../shared/tokens.ts";
import type { Walk } from "./sweep.ts";

type Liveness = PrincipalLiveness["state"];

export function principalState(walk: Walk, principal: Principal): Liveness {
  if (walk.connections.has(principal)) return "live";
  return walk.complete ? "gone" : "unknown";
}

/**
 * A server id and a cid are never used again. So the server itself proves its own connection gone, even while others
 * are silent; of a server that does not answer, only a complete sweep says that there is none.
 */
export function connectionState(walk: Walk, { serverId, cid, userNkey }: Tuple): Liveness {
  const page = walk.pages.get(serverId);
  if (!page) return walk.complete ? "gone" : "unknown";
  const row = page.rows.find((candidate) => candidate.cid === cid);
  if (row) return row.userNkey === userNkey ? "live" : "unknown";
  return page.fault === undefined ? "gone" : "unknown";
}
