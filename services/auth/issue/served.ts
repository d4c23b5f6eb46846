/** Check V: the request that a manager says it serves is one the authority saw, of somebody who may (operations §4). */
import { AuthorityError } from "../../../shared/errors.ts";
import { permits, resolveIssued } from "../../../shared/issued.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import type { EpGate } from "../../../shared/rows/gate.ts";
import { serviceSpecRows } from "../../../shared/rows/service.ts";
import { parseSubject, type RequestSubject } from "../../../shared/subjects.ts";
import type { Owner, Uid } from "../../../shared/tokens.ts";
import { MANAGER } from "../context.ts";
import { registeredContract } from "../registration/contracts.ts";
import type { ManagingVisit } from "../visit.ts";
import { type Observed, observe } from "./observe.ts";

type Visit = ManagingVisit<{ instanceId: Uid }>;

/** A request that is being served: its observation is taken once, however often the checks run. */
export interface Served {
  readonly subject: string;
  observed(visit: Visit): Promise<Observed>;
}

export function servedRequest(subject: string): Served {
  let taken: Promise<Observed> | undefined;
  return {
    subject,
    observed(visit) {
      taken ??= observe(visit, subject);
      return taken;
    },
  };
}

export interface Serving {
  readonly command: "run-resume" | "run-answer";
  /** Whose run it is; the scope `supervise` does not override it. */
  readonly owner: Owner;
  /** V3: what the caller asked for is what the manager asks for. */
  agrees(observed: Observed): boolean;
}

const denied = (message: string, details: AuthorityError["details"] = []): AuthorityError =>
  new AuthorityError("permission-denied", message, { details });

export async function checkServed(visit: Visit, gate: Entry<EpGate>, served: Served, serving: Serving): Promise<void> {
  const subject = servedSubject(visit, served.subject, serving);
  const observed = await served.observed(visit);
  if (!serving.agrees(observed)) throw denied("the served request asks for something else");
  assertBound(visit, gate, observed);
  await assertDeclared(visit, gate, serving, observed);
  if (subject.caller.owner !== serving.owner) throw denied("the served request is another owner's");
  await assertAuthority(visit, subject, served.subject, serving);
}

function servedSubject({ context, args }: Visit, served: string, serving: Serving): RequestSubject {
  const subject = parseSubject(served);
  const fits =
    subject?.space === context.space &&
    subject.endpoint === MANAGER &&
    subject.command === serving.command &&
    subject.rail !== "all" &&
    (subject.mode === null || subject.mode === "self") &&
    (subject.rail === "one" || subject.instanceId === args.instanceId);
  if (!subject || !fits) throw denied("the served subject is no such request to this instance");
  return subject;
}

function assertBound({ args }: Visit, gate: Entry<EpGate>, { bind }: Observed): void {
  if (!bind) return;
  if (bind.instanceId !== args.instanceId || bind.epoch !== gate.value.processEpoch) {
    throw denied("the served request was bound to another incarnation");
  }
}

/** V5: the digests are those that this instance registered. */
async function assertDeclared(
  { context, args, work }: Visit,
  gate: Entry<EpGate>,
  { command }: Serving,
  observed: Observed,
): Promise<void> {
  const undeclared = new AuthorityError("failed-precondition", "this instance has not registered that command");
  const spec = await context.store.read(serviceSpecRows.key({ endpoint: MANAGER, instanceId: args.instanceId }), work);
  const digest = spec?.value.clusterDigests[0];
  if (spec?.revision !== gate.value.registrationRevision || digest === undefined) throw undeclared;
  const contract = await registeredContract(context, digest, "failed-precondition", work);
  const declared = contract.commands.find(({ name }) => name === command);
  if (!declared) throw undeclared;
  const equal =
    observed.class === declared.class &&
    observed.op.inputDigest === declared.inputDigest &&
    observed.op.outputDigest === declared.outputDigest;
  if (!equal) throw denied("the served request was made for another contract");
}

/** V7 to V9: issued authority that permits the subject, or an agent answering on the older rail. */
async function assertAuthority(
  { context, work }: Visit,
  { caller, generation }: RequestSubject,
  served: string,
  { command }: Serving,
): Promise<void> {
  const { owner, actor, uid } = caller;
  if (generation !== undefined) {
    const ref = { space: context.space, owner, actor, uid, generation };
    const { permissions } = await resolveIssued(context.store, ref, context.ports, work);
    if (permits(permissions.publish, served)) return;
  } else if (command === "run-answer") {
    const row = await context.store.read(actorRows.key({ owner, actor }), work);
    if (row?.value.kind === "managed" && row.value.state === "active" && row.value.lifecycleUid === uid) return;
  }
  throw denied("the caller's authority is not bound to this request", [
    { kind: "ai.cotal.ep.unbound-caller-authority", owner, actor, uid },
  ]);
}
