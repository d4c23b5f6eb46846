/**
 * A door is a kind of caller and no second road: the host hands over the request of an assigned instance, which is
 * judged here and then goes the inner operation's own way, from check C4 on (operations §11).
 */
import type { TSchema } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { operationOfHttp } from "../../../shared/contracts/http.ts";
import type { Operation } from "../../../shared/contracts/operation.ts";
import { validationError } from "../../../shared/envelope.ts";
import { AuthorityError, internal } from "../../../shared/errors.ts";
import { type Assignment, assignmentRows } from "../../../shared/rows/assignment.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import type { AccountNkey, Actor, Space, Uid } from "../../../shared/tokens.ts";
import { MANAGER } from "../context.ts";
import { ASSIGNED_ACTOR, type ManagingHolder } from "../holders.ts";
import { servePrincipal } from "../registration/check.ts";
import { asked } from "../seen.ts";
import { type Answered, proceed, type Visit } from "../visit.ts";

/** What both doors carry. */
export interface DoorArgs {
  readonly space: Space;
  readonly accountPublicKey: AccountNkey;
  readonly assignmentRevision: number;
  readonly request: unknown;
}

/** The members of a manager's request that a door reads; the inner input schema has checked them. */
export interface InnerArgs {
  readonly actor: Actor;
  readonly instanceId: Uid;
  readonly managerLifecycleUid: Uid;
  readonly targetInstanceId?: Uid;
}

export interface Door<A extends DoorArgs> {
  readonly holder: "platform" | "supervisor";
  /** What may be asked for through it. */
  readonly operations: readonly Operation[];
  /** Check 1: the refusal of every other request, and of one that bears another actor than `cli`. */
  refusal(request: unknown): AuthorityError;
  /** Check 3, beyond what every assignment must agree in. */
  agrees(visit: Visit<A>, assignment: Entry<Assignment>): Promise<boolean>;
  /** Checks 4 to 6, where they differ. */
  admit(visit: Visit<A>, inner: Operation, args: InnerArgs, assignment: Assignment): Promise<void>;
}

const denied = (message: string): AuthorityError => new AuthorityError("permission-denied", message);

export async function enter<A extends DoorArgs>(
  visit: Visit<A>,
  door: Door<A>,
  handlers: readonly Answered[],
): Promise<unknown> {
  const { args, context } = visit;
  const inner = innerOf(door, args.request);
  const request = checked(inner, args.request);
  visit.note({ inner: inner.name, ...asked(request) });
  if (request.actor !== ASSIGNED_ACTOR) throw door.refusal(args.request);
  if (args.accountPublicKey !== context.data.account) throw denied("this is another account");
  const assignment = await assigned(visit, door, request);
  await assertGate(visit, assignment.value);
  await door.admit(visit, inner, request, assignment.value);
  const found = handlers.find(({ operation }) => operation.name === inner.name);
  if (!found) throw internal(`no handler of ${inner.name} behind a door`);
  return proceed({ ...visit, args: request as never, holder: holderOf(door, assignment), operation: inner }, found);
}

function innerOf<A extends DoorArgs>(door: Door<A>, request: unknown): Operation {
  const named = mapped(request);
  const inner = door.operations.find((operation) => operation === named);
  if (!inner) throw door.refusal(request);
  return inner;
}

/** The gateway's own map: what it does not know, no door does. */
function mapped(request: unknown): Operation | undefined {
  try {
    return operationOfHttp(request);
  } catch (error) {
    if (error instanceof AuthorityError) return undefined;
    throw error;
  }
}

const validators = new WeakMap<TSchema, Validator>();

function checked({ input }: Operation, request: unknown): InnerArgs {
  let validator = validators.get(input);
  if (!validator) {
    validator = Compile(input);
    validators.set(input, validator);
  }
  if (validator.Check(request)) return request as InnerArgs;
  throw validationError("the inner request does not fit its input schema", validator.Errors(request));
}

/** Check 3. One sentence for every reason. */
async function assigned<A extends DoorArgs>(
  visit: Visit<A>,
  door: Door<A>,
  { instanceId, managerLifecycleUid }: InnerArgs,
): Promise<Entry<Assignment>> {
  const { args, context, work } = visit;
  const row = await context.store.read(assignmentRows.key({ instanceId }), work);
  const agrees =
    row?.value.state === "assigned" &&
    row.value.space === context.space &&
    row.value.accountPublicKey === args.accountPublicKey &&
    row.value.lifecycleUid === managerLifecycleUid &&
    row.value.assignmentRevision === args.assignmentRevision &&
    (await door.agrees(visit, row));
  if (!row || !agrees) throw denied("this instance is not assigned so");
  return row;
}

/** Check 4. */
async function assertGate({ context, work }: Visit, { owner, instanceId }: Assignment): Promise<void> {
  const gate = await context.store.read(epGateRows.key({ endpoint: MANAGER, instanceId }), work);
  if (gate && gate.value.principal !== servePrincipal(owner, instanceId)) {
    throw denied("this instance is another owner's");
  }
}

/** The assignment stands for the scope; whoever issues reads it again after the gate. */
const holderOf = <A extends DoorArgs>({ holder }: Door<A>, row: Entry<Assignment>): ManagingHolder => ({
  kind: holder,
  owner: row.value.owner,
  granter: { kind: "assignment", row },
});
