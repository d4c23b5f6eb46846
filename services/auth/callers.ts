/** Check C2: which holder stands behind the caller of a request, and that this operation admits it (operations §1). */
import { identify } from "../../shared/contracts/exchange/identify.ts";
import type { CallerKind, Operation } from "../../shared/contracts/operation.ts";
import { AuthorityError, isAuthorityError, unavailable } from "../../shared/errors.ts";
import { actorRows } from "../../shared/rows/actor.ts";
import { epGateRows } from "../../shared/rows/gate.ts";
import { managerRows } from "../../shared/rows/manager.ts";
import { type Actor, Owner, principalOf, type Uid, Uid as UidToken } from "../../shared/tokens.ts";
import { timeLeft } from "../../shared/work.ts";
import type { Request } from "../host/handler.ts";
import { isGateway } from "../host/places.ts";
import { ahead, begunWith } from "./ahead.ts";
import { type AuthContext, MANAGER } from "./context.ts";
import { activePerson, currentGranter, managerRow } from "./granters.ts";
import { actorOf, type Holder } from "./holders.ts";

/** Args as far as the callers' table reads them; the input schema has checked their types. */
interface NamedArgs {
  readonly actor?: Actor;
  readonly instanceId?: Uid;
  readonly managerLifecycleUid?: Uid;
}

/** Operations whose `actor` names the row concerned and not the one who asks. */
const NAMES_A_ROW: ReadonlySet<string> = new Set([
  "agent-retire",
  "actor-grant",
  "actor-renew",
  "actor-revoke",
  "actor-list",
]);

/** What an assignment's manager may ask for on its own connection, beyond what its door admits. */
const ASSIGNED_TOO: ReadonlySet<string> = new Set(["manager-register", "manager-session-end"]);

const denied = (message: string, reason?: string): AuthorityError =>
  new AuthorityError("permission-denied", message, reason === undefined ? {} : { reason });

type Resolver = (context: AuthContext, request: Request, operation: Operation) => Promise<Holder>;

const human: Resolver = async (context, request) => {
  if (request.idpToken === undefined) throw new AuthorityError("unauthenticated", "this needs a login");
  const owner = await identifyOwner(context, request, request.idpToken);
  request.occupy(owner);
  const { actor } = request.args as NamedArgs;
  if (actor === undefined) throw denied("this needs an actor");
  const [row] = await Promise.all([
    activePerson(context.store, owner, actor, request.work),
    assertKnownSo(context, request),
  ]);
  return { kind: "human", owner, granter: { kind: "actor", row } };
};

/** Under which uid an instance lives is said by its preparation: proof U alone would believe any. */
async function assertKnownSo({ store }: AuthContext, { args, work }: Request): Promise<void> {
  const { instanceId, managerLifecycleUid } = args as NamedArgs;
  if (instanceId === undefined || managerLifecycleUid === undefined) return;
  const known = await store.read(managerRows.key({ instanceId }), work);
  if (known && known.value.managerLifecycleUid !== managerLifecycleUid) {
    throw denied("this instance is known under another uid");
  }
}

async function identifyOwner(context: AuthContext, request: Request, idpToken: string): Promise<Owner> {
  try {
    const deadlineMs = Math.max(1, Math.floor(timeLeft(request.work, context.ports)));
    const answer = await context.peers.call(identify, { idpToken }, { deadlineMs });
    return Owner.parse(answer.owner);
  } catch (error) {
    if (isAuthorityError(error, "unauthenticated"))
      throw new AuthorityError("unauthenticated", "the login was refused");
    throw unavailable("identify", error, "not-executed");
  }
}

const INSTANCE_ACTOR = /^manager_([a-z0-9]{26,32})$/;
const SERVE_ACTOR = /^manager_serve_([a-z0-9]{26,32})$/;

const manager: Resolver = async (context, request, operation) => {
  const { owner, actor, uid } = request.caller;
  const { store } = context;
  const { args, work } = request as Request<NamedArgs>;
  const instanceId = UidToken.parse(INSTANCE_ACTOR.exec(actor)?.[1]);
  const gate = ahead(store.read(epGateRows.key({ endpoint: MANAGER, instanceId }), work));
  // The actor that most bodies name is the granter, should the instance's row say so as well.
  const likely = args.actor && actorRows.key({ owner, actor: args.actor });
  const granters = likely ? begunWith(store, likely, work) : store;
  const row = await managerRow(store, instanceId, work);
  if (row.value.owner !== owner) throw denied("this instance is another owner's");
  if (row.value.managerLifecycleUid !== uid)
    throw new AuthorityError("expired", "this instance lives under another uid");
  const granter = await currentGranter(granters, row.value.grantedBy, work);
  const named =
    (NAMES_A_ROW.has(operation.name) || args.actor === undefined || args.actor === actorOf(granter)) &&
    (args.instanceId === undefined || args.instanceId === instanceId) &&
    (args.managerLifecycleUid === undefined || args.managerLifecycleUid === uid);
  if (!named) throw denied("the body names another manager than the subject");
  if (granter.kind === "assignment" && !ASSIGNED_TOO.has(operation.name)) {
    const door = granter.row.value.kind === "platform-control" ? "platform" : "supervisor";
    if (!operation.callers.includes(door)) throw denied("this assignment does not reach this operation");
  }
  return { kind: "manager", owner, granter, instanceId, gate };
};

const sessionHolder: Resolver = async (context, request) => {
  const { owner, actor, uid } = request.caller;
  const row = await activePerson(context.store, owner, actor, request.work);
  if (row.value.lifecycleUid !== uid) throw new AuthorityError("expired", "this actor lives under another uid");
  const named = (request.args as NamedArgs).actor;
  if (named !== undefined && named !== actor) throw denied("the body names another actor than the subject");
  return { kind: "session-holder", owner, actor, uid };
};

const admin: Resolver = async (context, request) => {
  const { owner, actor, uid } = request.caller;
  const row = await context.store.read(actorRows.key({ owner, actor }), request.work);
  const value = row?.value;
  if (!row || value?.kind !== "interactive" || value.state !== "active") throw denied("this caller has no active row");
  if (value.lifecycleUid !== uid) throw new AuthorityError("expired", "this actor lives under another uid");
  if (!value.scope.some((held) => held === "admin")) throw denied("this needs the scope admin");
  return { kind: "admin", owner, row };
};

const requester: Resolver = async (_context, { caller }) => ({ kind: "requester", ...caller });
const provisioned =
  (kind: "operator" | "host"): Resolver =>
  async (_context, { caller }) => ({ kind, principal: principalOf(caller.owner, caller.actor) });

interface Row {
  readonly kind: CallerKind;
  readonly is: (caller: Request["caller"]) => boolean;
  readonly resolve: Resolver;
}

const isLocal = (name: string) => (caller: Request["caller"]) => caller.owner === "local" && caller.actor === name;
const isPerson = ({ owner, actor }: Request["caller"]): boolean =>
  owner.startsWith("u_") && !INSTANCE_ACTOR.test(actor) && !SERVE_ACTOR.test(actor);

/** In order: the first row whose subject fits and whose kind the operation admits. */
const CALLERS: readonly Row[] = [
  { kind: "human", is: isGateway, resolve: human },
  { kind: "operator", is: isLocal("operator"), resolve: provisioned("operator") },
  { kind: "host", is: isLocal("platform_host"), resolve: provisioned("host") },
  { kind: "manager", is: ({ actor }) => INSTANCE_ACTOR.test(actor), resolve: manager },
  { kind: "requester", is: ({ actor }) => SERVE_ACTOR.test(actor), resolve: requester },
  { kind: "admin", is: isPerson, resolve: admin },
  { kind: "session-holder", is: isPerson, resolve: sessionHolder },
  { kind: "anyone", is: () => true, resolve: async () => ({ kind: "anyone" }) },
];

export async function resolveHolder(context: AuthContext, request: Request, operation: Operation): Promise<Holder> {
  const row = CALLERS.find(({ kind, is }) => operation.callers.includes(kind) && is(request.caller));
  if (!row) throw denied("this caller is not admitted here");
  return row.resolve(context, request, operation);
}
