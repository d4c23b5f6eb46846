/** Activates a managed agent within what its supervising actor may do (operations §8, lifecycles §7). */
import { assertAttenuated } from "../../../shared/attenuation.ts";
import { baseUrl } from "../../../shared/base-url.ts";
import type { agentEnroll } from "../../../shared/contracts/auth/agents/enroll.ts";
import type { Input } from "../../../shared/contracts/operation.ts";
import { isDerivedActor } from "../../../shared/credentials/roles.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { contains } from "../../../shared/patterns.ts";
import type { Actor as ActorRow } from "../../../shared/rows/actor.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { principalOf } from "../../../shared/tokens.ts";
import { activate, assertHeadFree, type Decision, type Grant, readBefore } from "../actors/activate.ts";
import { assertReadable } from "../actors/channels.ts";
import { provenEcho } from "../echo.ts";
import { assertScope, managerRow } from "../granters.ts";
import { grantedByOf, sameGranter } from "../holders.ts";
import { checkRegistration } from "../registration/check.ts";
import { type AuthHandler, type ManagingVisit, managing, revisit } from "../visit.ts";
import { parentOf } from "./parents.ts";

type Visit = ManagingVisit<Input<typeof agentEnroll>>;

const denied = (message: string): AuthorityError => new AuthorityError("permission-denied", message);

export const handleAgentEnroll: AuthHandler<typeof agentEnroll> = async (given) => {
  const visit = managing(given);
  const { args, context, work } = visit;
  const grant = grantOf(visit);
  visit.note({ target: principalOf(grant.owner, grant.actor) });
  let again = false;
  const decide = async (): Promise<Decision> => {
    const current = again ? await revisit(visit) : visit;
    again = true;
    return decideOn(current, grant);
  };
  const enrolled = await activate(context, { grant, managerInstance: args.instanceId, decide }, work);
  const { owner, actor, lifecycleUid, allowSubscribe, allowPublish } = enrolled.value;
  visit.note({ lifecycleUid, revision: enrolled.revision });
  return {
    ...provenEcho(visit),
    material: {
      owner,
      actor,
      lifecycleUid,
      sentinelCreds: context.sentinelCreds,
      subscribe: args.target.subscribe ?? [],
      allowSubscribe,
      allowPublish,
      agentBearerExchangeUrl: exchangeUrl(context),
    },
  };
};

/** Check 2. Clients append the route, as they do to what the discovery bundle names. */
function exchangeUrl({ publicUrl }: Visit["context"]): string {
  if (publicUrl !== undefined) return baseUrl(publicUrl);
  throw new AuthorityError("failed-precondition", "agents need a public URL to exchange their tokens at");
}

/** What is left out is nothing: an omission never means wide. */
function grantOf({ args, holder }: Visit): Grant {
  const { actor, tokenHash, capabilities = [], allowSubscribe = [], allowPublish = [], role, label } = args.target;
  const parent = principalOf(holder.owner, args.actor);
  return {
    owner: holder.owner,
    actor,
    kind: "managed",
    scope: [...new Set(capabilities)],
    allowSubscribe: [...new Set(allowSubscribe)],
    allowPublish: [...new Set(allowPublish)],
    ...(role === undefined ? {} : { role }),
    parent,
    ...(label === undefined ? {} : { label }),
    tokenHash,
    grantedBy: parent,
  };
}

/** Every check, again where the commit was lost: its fences are the rows that these were made on. */
async function decideOn(visit: Visit, grant: Grant): Promise<Decision> {
  const { context, args, work } = visit;
  const gate = await checkRegistration(visit);
  exchangeUrl(context);
  if (isDerivedActor(args.target.actor)) {
    throw new AuthorityError("bad-request", "this actor name is reserved for derived principals");
  }
  assertReadable(grant.allowSubscribe);
  const parent = await supervising(visit);
  await assertWithin(visit, parent.value, grant);
  const before = await readBefore(context, grant, work);
  const row = before.actor?.value;
  if (row?.kind === "interactive") throw new AuthorityError("already-exists", "this alias is a person's");
  if (before.actor && row?.state === "active") {
    if (row.tokenHash !== grant.tokenHash) throw new AuthorityError("conflict", "this agent has another token");
    await context.mailbox.open({ owner: row.owner, actor: row.actor, uid: row.lifecycleUid }, row.role, work);
    visit.note({ replayed: true });
    return { replay: before.actor };
  }
  assertHeadFree(before.head);
  return { ...before, fences: { root: parent, gate } };
}

/** The actor on whose behalf this instance was prepared: the agent's parent. */
async function supervising({ context, args, holder, work }: Visit): Promise<Entry<ActorRow>> {
  const { granter } = holder;
  assertScope(granter, "supervise");
  const manager = await managerRow(context.store, args.instanceId, work);
  if (granter.kind !== "actor" || !sameGranter(manager.value.grantedBy, grantedByOf(granter))) {
    throw denied("another granter prepared this instance");
  }
  return granter.row;
}

/** Check 4. */
async function assertWithin(visit: Visit, parent: ActorRow, grant: Grant): Promise<void> {
  const read = parentOf(visit);
  await assertAttenuated({ ...grant, state: "active" }, async (owner, actor) =>
    owner === parent.owner && actor === parent.actor ? parent : read(owner, actor),
  );
  const { subscribe = [] } = visit.args.target;
  const covered = subscribe.every((pattern) => grant.allowSubscribe.some((wide) => contains(wide, pattern)));
  if (!covered) throw denied("subscribe reaches beyond allowSubscribe");
}
