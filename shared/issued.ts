/**
 * Issued authority: a generation names one recorded permission ceiling (state §7). The callout issues it with a
 * connection and renews it with the next one under the same nonce; whoever acts on it resolves it from its sources.
 */
import { canonicalText, sha256Hex } from "./canonical.ts";
import type { Permissions, SubjectRules } from "./credentials/jwt.ts";
import { AuthorityError, isAuthorityError } from "./errors.ts";
import { LIFE } from "./limits.ts";
import { matches } from "./patterns.ts";
import type { Ports } from "./ports.ts";
import { type Accepted, acceptedRows } from "./rows/accepted.ts";
import { actorRows } from "./rows/actor.ts";
import { gateRows } from "./rows/gate.ts";
import { type Ceiling, type Issued, issuedRows, type Ref, type Rule } from "./rows/issued.ts";
import { create } from "./store/message.ts";
import type { Store } from "./store/store.ts";
import type { Generation, Nonce, Triple } from "./tokens.ts";
import type { Work } from "./work.ts";

/** What resolving gives: the ceiling, and the revision of the evidence that says so. */
export interface Resolved {
  readonly permissions: Ceiling;
  readonly resolvedRevision: number;
}

/** Under this token a connection finds what was accepted for it; nobody can tell the nonce from it. */
export const acceptedToken = (nonce: Nonce): string => sha256Hex(`cotal.accepted.v1\0${nonce}`).slice(0, 32);

/** The ceiling that a JWT's permissions are. Sorted, so that equal permissions are equal bytes. */
export const ceilingOf = ({ pub, sub }: Permissions): Ceiling => ({ publish: ruleOf(pub), subscribe: ruleOf(sub) });

function ruleOf({ allow, deny }: SubjectRules): Rule {
  const allowed: Rule["allow"] = allow.length === 0 ? { mode: "none" } : { mode: "patterns", patterns: ordered(allow) };
  return { allow: allowed, deny: ordered(deny) };
}

const ordered = (patterns: readonly string[]): string[] => [...new Set(patterns)].sort();

/** Whether one side of a ceiling permits exactly this literal subject. */
export function permits({ allow, deny }: Rule, subject: string): boolean {
  if (deny.some((pattern) => matches(pattern, subject))) return false;
  if (allow.mode !== "patterns") return allow.mode === "all";
  return allow.patterns.some((pattern) => matches(pattern, subject));
}

/**
 * Records a new ceiling: the evidence, then what the connection finds it by, each alone. The caller has found the
 * sources live. A nonce that was accepted meanwhile is `conflict`.
 */
export async function issue(
  store: Pick<Store, "commit">,
  { ref, nonce, permissions }: { readonly ref: Ref; readonly nonce: Nonce; readonly permissions: Ceiling },
  ports: Pick<Ports, "now">,
  work: Work,
): Promise<void> {
  const evidence: Issued = {
    version: 1,
    ref,
    sources: sourcesOf(ref),
    permissions,
    expiresAt: ports.now() + LIFE.issuedMs,
  };
  await store.commit([create(issuedRows.key(keyOf(ref)), evidence)], work);
  await store.commit([create(acceptedRows.key({ token: acceptedToken(nonce) }), { version: 1, ref })], work);
}

/**
 * Goes on under an accepted generation, and writes nothing. Another principal, another ceiling or a dead source is
 * `failed-precondition`: a new generation needs a new nonce and a new connection.
 */
export async function renew(
  store: Pick<Store, "read" | "nextRow">,
  {
    accepted,
    caller,
    permissions,
  }: { readonly accepted: Accepted; readonly caller: Triple; readonly permissions: Ceiling },
  ports: Pick<Ports, "now">,
  work: Work,
): Promise<void> {
  const { ref } = accepted;
  if (!isOf(ref, caller)) throw notRenewable("accepted for another principal");
  const resolved = await resolve(store, ref, ports, work).catch((error: unknown) => {
    throw isAuthorityError(error, "permission-denied") ? notRenewable(error.reason ?? error.message) : error;
  });
  if (canonicalText(resolved.permissions) !== canonicalText(permissions)) throw notRenewable("another ceiling");
}

/** The ceiling a reference names, if every source is live now; every failure is `permission-denied`. */
export async function resolveIssued(
  store: Pick<Store, "read" | "nextRow">,
  ref: Ref,
  ports: Pick<Ports, "now">,
  work?: Work,
): Promise<Resolved> {
  try {
    return await resolve(store, ref, ports, work);
  } catch (error) {
    if (!isAuthorityError(error) || error.code === "permission-denied") throw error;
    throw dead(`${error.code}: ${error.reason ?? error.message}`, error);
  }
}

/**
 * What a client makes of its accepted row: the generation that its subjects carry. For somebody else
 * `permission-denied`; another generation than it had `failed-precondition`, as its permissions are others.
 */
export function confirm({ ref }: Accepted, caller: Triple, generation?: Generation): Ref {
  if (!isOf(ref, caller)) throw dead("accepted for another principal");
  if (generation !== undefined && ref.generation !== generation) throw notRenewable("another ceiling");
  return ref;
}

async function resolve(
  store: Pick<Store, "read" | "nextRow">,
  ref: Ref,
  ports: Pick<Ports, "now">,
  work?: Work,
): Promise<Resolved> {
  const [evidence, actor, gate] = await Promise.all([
    store.nextRow(issuedRows.key(keyOf(ref)), 1, work),
    store.read(actorRows.key({ owner: ref.owner, actor: ref.actor }), work),
    store.read(gateRows.key({ uid: ref.uid }), work),
  ]);
  if (!evidence) throw dead("no evidence");
  const { ref: named, sources, permissions, expiresAt } = evidence.value;
  if (canonicalText(named) !== canonicalText(ref)) throw dead("the evidence names another reference");
  if (expiresAt !== undefined && expiresAt <= ports.now()) throw dead("expired");
  if (canonicalText(sources) !== canonicalText(sourcesOf(ref))) throw dead("unknown sources");
  if (actor?.value.state !== "active" || actor.value.lifecycleUid !== ref.uid) throw dead("the actor row has ended");
  if (!gate || gate.value.state === "retired") throw dead("the lifecycle has ended");
  return { permissions, resolvedRevision: evidence.revision };
}

/** What an issued ceiling stands on: the actor row at this uid, and its root's lifecycle. Wire names, not our keys. */
const sourcesOf = ({ space, owner, actor, uid }: Ref): Issued["sources"] => [
  { space, bucket: `cotal_actors_${space}`, key: `actor.${owner}.${actor}.${uid}` },
  { space, bucket: `cotal_auth_${space}`, key: `cred.${uid}` },
];

const keyOf = ({ owner, actor, uid, generation }: Ref) => ({ owner, actor, uid, generation });

const isOf = (ref: Ref, caller: Triple): boolean =>
  ref.owner === caller.owner && ref.actor === caller.actor && ref.uid === caller.uid;

const dead = (reason: string, cause?: unknown): AuthorityError =>
  new AuthorityError("permission-denied", "the issued authority is not live", { reason: `issued: ${reason}`, cause });

const notRenewable = (reason: string): AuthorityError =>
  new AuthorityError("failed-precondition", "this nonce has another authority, connect under a fresh one", {
    reason: `issued: ${reason}`,
  });
