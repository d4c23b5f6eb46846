/** The root credential that an incarnation stands on; the exchange reads it and never makes one (identity §7). */
import { AuthorityError } from "../../shared/errors.ts";
import type { Actor } from "../../shared/rows/actor.ts";
import { credRows } from "../../shared/rows/credential.ts";
import { gateRows } from "../../shared/rows/gate.ts";
import { headRows } from "../../shared/rows/head.ts";
import type { Reader } from "../../shared/store/store.ts";
import { type CredentialId, principalOf } from "../../shared/tokens.ts";
import type { Work } from "../../shared/work.ts";

export interface Root {
  readonly credentialId: CredentialId;
  /** Unix milliseconds. */
  readonly exp: number;
}

/** Head active at the row's uid, gate open, root active, unexpired, this principal's: else `permission-denied`. */
export async function rootOf(store: Reader, row: Actor, now: number, work: Work): Promise<Root> {
  const { owner, actor, lifecycleUid: uid } = row;
  const [head, gate] = await Promise.all([
    store.read(headRows.key({ owner, actor }), work),
    store.read(gateRows.key({ uid }), work),
  ]);
  if (head?.value.state !== "active" || head.value.lifecycleUid !== uid) throw denied("head not active at this uid");
  if (gate?.value.state !== "open") throw denied("gate not open");
  const { currentCredentialId: credentialId } = head.value;
  const root = (await store.read(credRows.key({ uid, credentialId }), work))?.value;
  if (root?.role !== "root" || root.state !== "active") throw denied("root absent or revoked");
  if (root.exp <= now) throw denied("root expired");
  if (root.holderPrincipal !== principalOf(owner, actor)) throw denied("root of another principal");
  return { credentialId, exp: root.exp };
}

const denied = (reason: string): AuthorityError =>
  new AuthorityError("permission-denied", "this incarnation is not active", { reason });
