/** Every family of the stream that decides authority: whose row a key names (state §3, lifecycles §5). */
import { actorRows } from "./actor.ts";
import { assignmentRows, currentRows } from "./assignment.ts";
import { credRows, epCredRows } from "./credential.ts";
import type { Key } from "./family.ts";
import { frontierRows } from "./frontier.ts";
import { epGateRows, gateRows } from "./gate.ts";
import { headRows } from "./head.ts";
import { byManagerRows, managerRows } from "./manager.ts";
import { planeRows } from "./plane.ts";
import { sessionRows } from "./session.ts";
import { stageRows } from "./stage.ts";
import { uidRows } from "./uid.ts";

export const AUTHORITY_ROWS = [
  actorRows,
  headRows,
  uidRows,
  gateRows,
  epGateRows,
  credRows,
  epCredRows,
  sessionRows,
  stageRows,
  planeRows,
  frontierRows,
  managerRows,
  byManagerRows,
  assignmentRows,
  currentRows,
] as const;

/** The key that a text names in the authority stream, with the family whose rows may stand there. */
export function authorityKey(text: string): Key<unknown> | undefined {
  for (const rows of AUTHORITY_ROWS) {
    const key: Key<unknown> | undefined = rows.keyOf(text);
    if (key) return key;
  }
  return undefined;
}
