/** The steps of a connect, in the order in which they run (identity §9.2). The first that throws denies. */

import { type Bearer, validateBearer } from "../../shared/bearer.ts";
import type { BearerKeys } from "../../shared/bearer-keys.ts";
import { AuthorityError, unavailable } from "../../shared/errors.ts";
import { issue, renew } from "../../shared/issued.ts";
import type { Ports } from "../../shared/ports.ts";
import { inboxRows } from "../../shared/rows/connect.ts";
import type { Entry } from "../../shared/rows/family.ts";
import { create, swap } from "../../shared/store/message.ts";
import type { Store } from "../../shared/store/store.ts";
import { Nonce, principalOf, type Space } from "../../shared/tokens.ts";
import { viewRule } from "../../shared/views.ts";
import type { Work } from "../../shared/work.ts";
import type { Asked } from "./authorize.ts";
import type { Issuances } from "./issuances.ts";
import { type Rows, readRows } from "./rows.ts";
import { Steps } from "./steps.ts";
import { type SignedUser, type UserSigner, userOf } from "./user.ts";

/** What the steps work with. */
export interface Reach {
  readonly space: Space;
  readonly store: Pick<Store, "read" | "nextRow" | "commit">;
  readonly bearerKeys: Pick<BearerKeys, "of">;
  readonly signer: UserSigner;
  readonly issuances: Pick<Issuances, "take">;
  readonly ports: Ports;
  /** False while a shape or a reader is unproven. */
  ready(): boolean;
}

type Start = Asked & { readonly reach: Reach };
type Proven = Start & { readonly bearer: Bearer };
type Named = Proven & { readonly nonce: Nonce };
type Read = Named & { readonly rows: Rows };
type Signed = Read & { readonly user: SignedUser };

/** 1. Its turn came within 3 s of its arrival; nothing was read before. */
function turn({ inTime, reach }: Start): void {
  if (!inTime) throw unavailable("its turn did not come in time");
  if (!reach.ready()) throw unavailable("this replica is not ready");
}

/** 2. A valid bearer of this space. The broker admits none that has passed, whatever skew a verifier grants. */
async function proof({ request, reach, note }: Start): Promise<{ bearer: Bearer }> {
  if (!request.token) throw new AuthorityError("unauthenticated", "no bearer");
  const { space, bearerKeys, ports } = reach;
  const bearer = await validateBearer(request.token, space, (kid) => bearerKeys.of(kid), ports);
  const { owner, actor, lifecycleUid, credentialId, view } = bearer.act;
  note({ principal: principalOf(owner, actor), uid: lifecycleUid, credentialId, view: view ?? "agent" });
  if (bearer.exp * 1_000 <= ports.now()) throw new AuthorityError("expired", "the bearer has expired");
  return { bearer };
}

/** 3. The connection's name is its nonce. */
function nonce({ request }: Proven): { nonce: Nonce } {
  return { nonce: Nonce.parse(request.name) };
}

/** 4. Everything that decides, read together. */
async function rows({ reach, bearer, nonce, work }: Named): Promise<{ rows: Rows }> {
  return { rows: await readRows(reach.store, bearer, nonce, work) };
}

/** 5. The actor is active in this incarnation, and as wide as the bearer. */
function actor({ bearer: { act, scope }, rows: { row } }: Read): void {
  if (row?.value.state !== "active") throw denied("the actor is not active");
  if (row.value.lifecycleUid !== act.lifecycleUid) throw denied("the actor is another incarnation");
  if (row.value.parent !== act.parent) throw denied("the actor has another parent");
  if (!scope.every((held) => row.value.scope.includes(held))) throw denied("the actor was narrowed");
}

/** 6. The gate is open, and the root that the bearer stands on is the current one (identity §7). */
function root({ bearer: { act }, rows: { gate, head, root }, reach: { ports } }: Read): void {
  if (gate?.value.state !== "open") throw denied("the gate is not open");
  if (head?.value.lifecycleUid !== act.lifecycleUid) throw denied("the head names another incarnation");
  if (head.value.currentCredentialId !== act.credentialId) throw denied("the root is not the current one");
  const holder = principalOf(act.owner, act.actor);
  if (root?.value.state !== "active" || root.value.role !== "root") throw denied("the root is not active");
  if (root.value.exp <= ports.now()) throw denied("the root has lapsed");
  if (root.value.holderPrincipal !== holder) throw denied("the root is held by another principal");
}

/** 7. What the view stands on still holds: a scope, a session, a manager. */
function view({ bearer: { act }, rows: { row, session, manager }, reach: { ports } }: Read): void {
  const { scope } = viewRule(act.view);
  if (scope !== undefined && !row?.value.scope.some((held) => held === scope)) {
    throw denied(`the view needs scope ${scope}`);
  }
  if (act.session) assertSession(act, act.session, session, ports.now());
  if (act.managerInstanceId && manager?.value.state !== "open") throw denied("the manager's gate is not open");
}

function assertSession(
  act: Bearer["act"],
  claimed: NonNullable<Bearer["act"]["session"]>,
  found: Rows["session"],
  now: number,
): void {
  const session = found?.session?.value;
  if (session?.state !== "active" || session.exp <= now) throw denied("the session has ended");
  const { holder, endpoint, serving } = session;
  if (holder.principal !== principalOf(act.owner, act.actor) || holder.lifecycleUid !== act.lifecycleUid) {
    throw denied("the session is held by another");
  }
  if (endpoint !== claimed.endpoint || serving.epoch !== claimed.epoch) throw denied("the session is served elsewhere");
  if (found?.holder?.value.state !== "active" || found.holder.value.exp <= now) {
    throw denied("the holder's half of the session has ended");
  }
  const gate = found.serving?.value;
  if (gate?.state !== "open" || gate.processEpoch !== claimed.epoch) throw denied("the session's server has gone");
}

/** 8. The nonce is free, or this incarnation's already: its inbox is nobody else's to read. */
function inbox({ bearer: { act }, rows: { inbox } }: Read): void {
  if (!inbox) return;
  const { owner, actor, lifecycleUid } = inbox.value;
  if (owner !== act.owner || actor !== act.actor || lifecycleUid !== act.lifecycleUid) {
    throw denied("the nonce is held by another");
  }
}

/** 9. The view's permissions, as a user JWT of at most 16 KiB. */
function permissions({ request, bearer, nonce, rows, reach }: Read): { user: SignedUser } {
  return { user: userOf(reach.signer, { key: request.userNkey, bearer, nonce, rows }, reach.ports) };
}

/** 10. An issued ceiling is recorded before anybody may use it; so many new ones as a person's clients need. */
async function issued({ user, nonce, bearer: { act }, rows: { accepted }, reach, work }: Signed): Promise<void> {
  if (!user.issued) return;
  const { ref, permissions } = user.issued;
  const { store, issuances, ports } = reach;
  if (!accepted) {
    issuances.take(act.lifecycleUid);
    return issue(store, { ref, nonce, permissions }, ports, work);
  }
  const caller = { owner: act.owner, actor: act.actor, uid: act.lifecycleUid };
  return renew(store, { accepted: accepted.value, caller, permissions }, ports, work);
}

/** 11. Holds the nonce for this incarnation; an earlier connection's time is never cut. */
async function hold({ bearer: { act, exp }, nonce, rows: { inbox }, reach, work }: Read): Promise<void> {
  const { owner, actor, lifecycleUid } = act;
  const value = { owner, actor, lifecycleUid, exp: Math.max(exp * 1_000, inbox?.value.exp ?? 0) };
  await reach.store.commit([inbox ? swap(inbox, value) : create(inboxRows.key({ nonce }), value)], work);
}

/** 12. Nothing was frozen or revoked between reading and signing. */
async function unmoved({ rows: { row, gate }, reach: { store }, work }: Read): Promise<void> {
  const moved = await Promise.all([hasMoved(store, row, work), hasMoved(store, gate, work)]);
  if (moved.includes(true)) throw denied("the actor or its gate moved meanwhile");
}

async function hasMoved<V>(store: Reach["store"], entry: Entry<V> | undefined, work: Work): Promise<boolean> {
  return !entry || (await store.read(entry.key, work))?.revision !== entry.revision;
}

/** In this order; a log line names the step that denied by number and name. */
export const CONNECT_STEPS = Steps.from<Start>()
  .check(turn)
  .learn(proof)
  .learn(nonce)
  .learn(rows)
  .check(actor)
  .check(root)
  .check(view)
  .check(inbox)
  .learn(permissions)
  .check(issued)
  .check(hold)
  .check(unmoved);

const denied = (reason: string): AuthorityError =>
  new AuthorityError("permission-denied", "this connection is not permitted", { reason });
