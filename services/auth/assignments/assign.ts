/** Writes one assignment, whatever its kind: the operator gives an instance away or takes it back (operations §11). */
import { AuthorityError } from "../../../shared/errors.ts";
import { ASSIGNMENT } from "../../../shared/limits.ts";
import { type Assignment, assignmentRows } from "../../../shared/rows/assignment.ts";
import type { Entry, Key } from "../../../shared/rows/family.ts";
import { type EpGate, epGateRows } from "../../../shared/rows/gate.ts";
import { create, type Message, swap, touch } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import type { RequestId, Uid } from "../../../shared/tokens.ts";
import { MANAGER } from "../context.ts";
import { servePrincipal } from "../registration/check.ts";
import type { Visit } from "../visit.ts";

/** What both assigning operations ask for. */
export interface AssignArgs {
  readonly requestId: RequestId;
  readonly instanceId: Uid;
  readonly lifecycleUid: Uid;
  readonly expectedRevision: number;
}

export interface Assigning<V extends Assignment, A extends AssignArgs> {
  /** The row that the request asks for, at the revision after the one it expects. */
  row(visit: Visit<A>, common: Common): V;
  /** Check 3. Gives the messages that stand beside the row's own. */
  admit(visit: Visit<A>, wanted: V): Promise<readonly Message[]>;
}

/** The members of a row that are the same for every kind. */
type Common = Pick<
  Assignment,
  "v" | "space" | "accountPublicKey" | "instanceId" | "lifecycleUid" | "assignmentRevision"
>;

const conflict = (message: string): AuthorityError => new AuthorityError("conflict", message);

export async function assign<V extends Assignment, A extends AssignArgs>(
  visit: Visit<A>,
  assigning: Assigning<V, A>,
): Promise<V> {
  const { args, context, work } = visit;
  const { instanceId, lifecycleUid, expectedRevision } = args;
  const wanted = assigning.row(visit, {
    v: 1,
    space: context.space,
    accountPublicKey: context.data.account,
    instanceId,
    lifecycleUid,
    assignmentRevision: expectedRevision + 1,
  });
  const key = assignmentRows.key({ instanceId });
  for (let tries = 1; ; tries += 1) {
    const stored = await context.store.read(key, work);
    if (stored && same(stored.value, wanted)) {
      visit.note({ replayed: true });
      return wanted;
    }
    assertNext(stored, wanted, expectedRevision);
    const gate = await ownGate(visit, wanted);
    const along = await assigning.admit(visit, wanted);
    const own = stored ? swap(stored, wanted) : create(key, wanted as Assignment);
    try {
      const [revision] = await context.store.commit([own, ...along, ...touches(gate)], work);
      visit.note({ assignmentRevision: wanted.assignmentRevision, state: wanted.state, revision });
    } catch (error) {
      // Decided again: what moved may be the gate alone, or this very request, sent twice.
      if (!lostOn(error) || tries >= ASSIGNMENT.tries) throw error;
      continue;
    }
    if (!gate) await touchNew(visit, wanted);
    return wanted;
  }
}

/** Check 1. */
function assertNext(stored: Entry<Assignment> | undefined, wanted: Assignment, expectedRevision: number): void {
  if ((stored?.value.assignmentRevision ?? 0) !== expectedRevision) {
    throw conflict("the assignment stands at another revision");
  }
  if (!stored) return;
  const { kind, owner, lifecycleUid, state } = stored.value;
  if (kind !== wanted.kind || owner !== wanted.owner || lifecycleUid !== wanted.lifecycleUid) {
    throw conflict("kind, owner and lifecycle of an assignment never change");
  }
  if (state !== "assigned") throw conflict("this assignment has ended for good");
}

/** Rows are closed and JSON, so equal rows have equal members. */
const same = (one: Assignment, other: Assignment): boolean =>
  JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort());

const gateKey = (instanceId: Uid): Key<EpGate> => epGateRows.key({ endpoint: MANAGER, instanceId });

/** Check 2. */
async function ownGate(
  { context, work }: Pick<Visit, "context" | "work">,
  { owner, instanceId }: Assignment,
): Promise<Entry<EpGate> | undefined> {
  const gate = await context.store.read(gateKey(instanceId), work);
  if (gate && gate.value.principal !== servePrincipal(owner, instanceId)) {
    throw conflict("this instance is another owner's");
  }
  return gate;
}

/** Whoever read the gate before loses the fence, so nothing is issued on the revision that goes (state §4, Touch). */
const touches = (gate: Entry<EpGate> | undefined): Message[] =>
  gate && gate.value.state !== "retired" ? [touch(gate)] : [];

/** A gate made between the read and the commit carries no expectation of ours: it is touched afterwards. */
async function touchNew(visit: Pick<Visit, "context" | "work">, wanted: Assignment): Promise<void> {
  const { store } = visit.context;
  for (;;) {
    const messages = touches(await store.read(gateKey(wanted.instanceId), visit.work));
    if (messages.length === 0) return;
    try {
      await store.commit(messages, visit.work);
      return;
    } catch (error) {
      if (!lostOn(error)) throw error;
    }
  }
}
