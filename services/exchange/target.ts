/** Which manager, or which session, a bearer is for (identity §8). */
import type { BearerAct } from "../../shared/bearer.ts";
import { AuthorityError } from "../../shared/errors.ts";
import type { Actor } from "../../shared/rows/actor.ts";
import { epGateRows } from "../../shared/rows/gate.ts";
import { sessionRows } from "../../shared/rows/session.ts";
import { sameText } from "../../shared/same-text.ts";
import { type EndpointLabel, Owner, principalOf, type SessionId, type Uid } from "../../shared/tokens.ts";
import type { Work } from "../../shared/work.ts";
import { belongsTo, type InstanceDeps, instancesOf, isLive, liveOnes } from "./instances.ts";

const LOCAL = Owner.parse("local");

export interface TargetDeps extends InstanceDeps {
  /** The owner of the space's own platform manager. */
  readonly platform: Owner;
}

/** What `manager-session` opened; it only selects the row. */
export interface SessionGrant {
  readonly endpoint: EndpointLabel;
  readonly sessionId: SessionId;
  readonly epoch: number;
  readonly grantSig: string;
}

/**
 * With a selector that instance, if it is the owner's or the space's own and alive: else `not-found`. Without one the
 * only live instance of the owner; the space's own only for an owner who has none at all: else `failed-precondition`.
 */
export async function managerTarget(
  deps: TargetDeps,
  owner: Owner,
  selector: Uid | undefined,
  work: Work,
): Promise<Uid> {
  if (selector !== undefined) {
    const owners = await Promise.all([owner, LOCAL, deps.platform].map((one) => belongsTo(deps, one, selector, work)));
    if (owners.includes(true) && (await isLive(deps, selector, work))) return selector;
    throw new AuthorityError("not-found", "there is no such manager, or it is not running");
  }
  const own = await instancesOf(deps, owner, work);
  const candidates = own.length > 0 ? own : await ofTheSpace(deps, work);
  const [only, ...others] = await liveOnes(deps, candidates, work);
  if (only !== undefined && others.length === 0) return only;
  throw new AuthorityError(
    "failed-precondition",
    only === undefined ? "no manager is running" : "several managers are running, name one",
  );
}

async function ofTheSpace(deps: TargetDeps, work: Work): Promise<Uid[]> {
  const each = await Promise.all([LOCAL, deps.platform].map((owner) => instancesOf(deps, owner, work)));
  return each.flat();
}

/** The session as it stands now; its end is the row's, whatever the grant says. Any doubt is `permission-denied`. */
export async function sessionTarget(
  { store, ports }: Pick<TargetDeps, "store" | "ports">,
  holder: Actor,
  grant: SessionGrant,
  work: Work,
): Promise<NonNullable<BearerAct["session"]>> {
  const { endpoint, sessionId, epoch } = grant;
  const session = (await store.read(sessionRows.key({ sessionId }), work))?.value;
  const same = sameText(session?.grantSig ?? "", grant.grantSig);
  if (!session || !same) throw denied("no such session, or another signature");
  if (session.state !== "active" || session.exp <= ports.now()) throw denied("session over");
  if (session.holder.principal !== principalOf(holder.owner, holder.actor)) throw denied("another holder");
  if (session.holder.lifecycleUid !== holder.lifecycleUid) throw denied("another incarnation");
  if (session.endpoint !== endpoint || session.serving.epoch !== epoch) throw denied("another endpoint or epoch");
  const gate = await store.read(epGateRows.key({ endpoint, instanceId: session.serving.instanceId }), work);
  if (gate?.value.state !== "open" || gate.value.processEpoch !== epoch) throw denied("serving gate moved on");
  return { endpoint, sessionId, epoch, exp: Math.floor(session.exp / 1_000) };
}

const denied = (reason: string): AuthorityError =>
  new AuthorityError("permission-denied", "the session is not open to you", { reason });
