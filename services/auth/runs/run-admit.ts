/** Lets a run in on the strength of the observed request that started it (operations §5). */
import type { runAdmit } from "../../../shared/contracts/auth/runs/run-admit.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { permits, resolveIssued } from "../../../shared/issued.ts";
import { type Admission, admissionRows } from "../../../shared/rows/admission.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import type { Ref } from "../../../shared/rows/issued.ts";
import { create } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import { parseSubject, type RequestSubject } from "../../../shared/subjects.ts";
import type { Generation } from "../../../shared/tokens.ts";
import { MANAGER } from "../context.ts";
import { observe } from "../issue/observe.ts";
import { checkRegistration } from "../registration/check.ts";
import { type AuthHandler, managing, type Visit } from "../visit.ts";

const denied = (message: string): AuthorityError => new AuthorityError("permission-denied", message);

export const handleRunAdmit: AuthHandler<typeof runAdmit> = async (given) => {
  const visit = managing(given);
  const { context, args, work, holder } = visit;
  const { runId, subject } = args.run;
  await checkRegistration(visit);
  const start = startSubject(visit, subject);
  await observe(visit, subject);
  if (start.caller.owner !== holder.owner) throw denied("the run was asked for by another owner");
  const { owner, actor, uid } = start.caller;
  const ref: Ref = { space: context.space, owner, actor, uid, generation: start.generation };
  const { permissions, resolvedRevision } = await resolveIssued(context.store, ref, context.ports, work);
  if (!permits(permissions.publish, subject)) throw denied("the ceiling does not permit this subject");
  const admission: Admission = {
    version: 1,
    space: context.space,
    endpoint: MANAGER,
    runId,
    instanceId: args.instanceId,
    caller: { owner, actor, uid, generation: start.generation },
    ceiling: permissions,
    provenance: { kind: "issued", ref, resolvedRevision },
    admittedAt: context.ports.now(),
  };
  const entry = await admit(visit, admission);
  given.note({ caller: `${owner}.${actor}`, generation: start.generation, revision: entry.revision });
  return {
    v: 1,
    kind: "manager-run-admission",
    requestId: args.requestId,
    runId,
    revision: entry.revision,
    admission: entry.value,
  };
};

/** Check 2: a run request of an issued authority, to this instance's manager. */
function startSubject(
  { context, args }: Visit<{ instanceId: string }>,
  text: string,
): RequestSubject & { generation: Generation } {
  const subject = parseSubject(text);
  const fits =
    subject?.space === context.space &&
    subject.version === "v1" &&
    subject.endpoint === MANAGER &&
    subject.command === "run-start" &&
    subject.rail !== "all" &&
    subject.mode === null &&
    (subject.rail === "one" || subject.instanceId === args.instanceId);
  if (!subject || !fits || subject.generation === undefined)
    throw denied("the subject is no run request to this instance");
  return { ...subject, generation: subject.generation };
}

/** Check 7 and the commit: the broker itself refuses a second admission; the stored one may be this very one. */
async function admit(visit: Visit, admission: Admission): Promise<Entry<Admission>> {
  const { context, work } = visit;
  const key = admissionRows.key({ endpoint: MANAGER, runId: admission.runId });
  const before = await context.store.read(key, work);
  if (before) return replayed(visit, same(before, admission));
  try {
    const [revision = 0] = await context.store.commit([create(key, admission)], work);
    return { key, value: admission, revision };
  } catch (error) {
    const stored = lostOn(error) ? await context.store.read(key, work) : undefined;
    if (!stored) throw error;
    return replayed(visit, same(stored, admission));
  }
}

function replayed({ note }: Visit, stored: Entry<Admission>): Entry<Admission> {
  note({ replayed: true });
  return stored;
}

function same(stored: Entry<Admission>, wanted: Admission): Entry<Admission> {
  const [one, other] = [stored.value, wanted];
  const equal =
    one.instanceId === other.instanceId &&
    one.caller.owner === other.caller.owner &&
    one.caller.actor === other.caller.actor &&
    one.caller.uid === other.caller.uid &&
    one.caller.generation === other.caller.generation;
  if (!equal) throw new AuthorityError("conflict", "the run was admitted for another caller or instance");
  return stored;
}
