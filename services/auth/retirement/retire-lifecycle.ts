/** Retires the agent that a manager's requester credential names (operations §9). */
import type { retireLifecycle } from "../../../shared/contracts/auth/retirement/retire-lifecycle.ts";
import { retireOpId } from "../../../shared/credentials/roles.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import { headRows } from "../../../shared/rows/head.ts";
import { principalOf, type Triple } from "../../../shared/tokens.ts";
import type { AuthHandler, Visit } from "../visit.ts";
import { retire } from "./retire.ts";

type Asking = Parameters<AuthHandler<typeof retireLifecycle>>[0];

const denied = (message: string): AuthorityError => new AuthorityError("permission-denied", message);

export const handleRetireLifecycle: AuthHandler<typeof retireLifecycle> = async (visit) => {
  const { caller, args } = visit;
  const target = targetOf(visit);
  const { opId } = args;
  visit.note({ target: principalOf(target.owner, target.actor), lifecycleUid: target.uid });
  if (opId !== retireOpId(target.uid)) throw denied("the operation id is not that of this lifecycle");
  await assertServes(visit);
  if (target.owner !== caller.owner) throw denied("this lifecycle is another owner's");
  await assertCurrent(visit, target);
  // Check 8, that no other operation holds the gate, stands with the freeze.
  const by = principalOf(caller.owner, caller.actor);
  const { evictedPrincipals } = await retire(visit, { ...target, opId, by });
  return { retired: true, lifecycleUid: target.uid, opId, evictedPrincipals };
};

function targetOf({ subject }: Asking): Triple {
  const { owner, actor, uid } = subject.target ?? {};
  if (owner === undefined || actor === undefined || uid === undefined) throw new TypeError("a target without a triple");
  return { owner, actor, uid };
}

/** Checks 2 to 4: the body chooses a gate, and the subject's caller must be who serves it now. */
async function assertServes({ caller, args, context, work }: Asking): Promise<void> {
  const { serveEndpoint: endpoint, serveInstanceId: instanceId, serveEpoch } = args;
  const gate = await context.store.read(epGateRows.key({ endpoint, instanceId }), work);
  if (!gate || gate.value.state === "retired") {
    throw new AuthorityError("failed-precondition", "this instance is not registered, or has ended");
  }
  const { principal, processEpoch: epoch } = gate.value;
  if (principal !== principalOf(caller.owner, caller.actor)) throw denied("this instance is another principal's");
  if (epoch === serveEpoch) return;
  throw new AuthorityError("conflict", "this instance serves under another epoch", {
    details: [{ kind: "ai.cotal.auth.incarnation", instanceId, epoch }],
  });
}

/** Checks 6 and 7; a person's lifecycle has an operation id of its own, which no manager's credential names. */
async function assertCurrent(
  { context, work }: Pick<Visit, "context" | "work">,
  { owner, actor, uid }: Triple,
): Promise<void> {
  const [head, row] = await Promise.all([
    context.store.read(headRows.key({ owner, actor }), work),
    context.store.read(actorRows.key({ owner, actor }), work),
  ]);
  if (!head) throw new AuthorityError("not-found", "there is no such lifecycle");
  const { lifecycleUid } = head.value;
  if (lifecycleUid !== uid) {
    throw new AuthorityError("expired", "this principal lives under another uid", {
      details: [{ kind: "ai.cotal.auth.current-lifecycle", lifecycleUid }],
    });
  }
  if (row?.value.kind === "interactive") throw denied("the operation id is not that of this lifecycle");
}
