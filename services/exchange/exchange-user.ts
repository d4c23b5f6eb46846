/** A person's login becomes a bearer (identity §8). */
import { exchangeUser } from "../../shared/contracts/exchange/exchange-user.ts";
import type { Input } from "../../shared/contracts/operation.ts";
import { AuthorityError } from "../../shared/errors.ts";
import { type Actor, actorRows } from "../../shared/rows/actor.ts";
import type { Owner } from "../../shared/tokens.ts";
import { type View, viewRule } from "../../shared/views.ts";
import type { Work } from "../../shared/work.ts";
import { endpoint, type Request } from "../host/handler.ts";
import { assertView, faceOf } from "./callers.ts";
import type { ExchangeDeps } from "./deps.ts";
import type { Proof } from "./idp.ts";
import { personOwner } from "./owner.ts";
import { rootOf } from "./root.ts";
import { signGrant, type Target } from "./sign.ts";
import { managerTarget, sessionTarget } from "./target.ts";

type Args = Input<typeof exchangeUser>;

export const exchangeUserEndpoint = (deps: ExchangeDeps) =>
  endpoint(exchangeUser, async (request) => {
    const { args, work, ports } = request;
    const { view, ttlSec } = args;
    assertPaired(args);
    assertView(view, faceOf(request.caller));
    const proof = await prove(deps, request);
    const owner = personOwner(deps.trust.ownerSecret, proof.issuer, proof.subject);
    request.occupy(owner);
    request.note({ owner, actor: args.actor, view });
    const row = await personRow(deps, owner, args.actor, work);
    assertScope(row, view);
    const root = await rootOf(deps.targets.store, row, ports.now(), work);
    const target = await targetOf(deps, row, args, work);
    return signGrant(deps.trust.issuing, deps.space, { row, root, view, ttlSec, proofExp: proof.exp, target }, ports);
  });

/** A claim comes with its view and the view with its claim; a manager may also be left to be found. */
function assertPaired({ view, managerInstanceId, sessionGrant, transferWriter }: Args): void {
  const fits =
    (managerInstanceId === undefined || view === "manager-caller") &&
    (sessionGrant !== undefined) === (view === "session-caller") &&
    (transferWriter !== undefined) === (view === "transfer-writer");
  if (!fits) throw new AuthorityError("bad-request", "an argument without its view, or the reverse");
}

async function prove({ idp }: ExchangeDeps, { idpToken }: Pick<Request, "idpToken">): Promise<Proof> {
  if (idpToken === undefined) throw new AuthorityError("unauthenticated", "there is no proof of login");
  return idp.verify(idpToken);
}

/** Only a proven person learns the owner that an operator would have to grant. */
async function personRow({ targets }: ExchangeDeps, owner: Owner, actor: Args["actor"], work: Work): Promise<Actor> {
  const row = (await targets.store.read(actorRows.key({ owner, actor }), work))?.value;
  if (row?.kind === "interactive" && row.state === "active") return row;
  throw new AuthorityError("permission-denied", "this login has no active actor of that name", {
    details: [{ kind: "ai.cotal.auth.no-actor", owner, actor }],
  });
}

function assertScope(row: Actor, view: View | undefined): void {
  const { scope } = viewRule(view);
  if (scope === undefined || row.scope.some((held) => held === scope)) return;
  throw new AuthorityError("permission-denied", `this view needs the scope ${scope}`);
}

async function targetOf({ targets }: ExchangeDeps, row: Actor, args: Args, work: Work): Promise<Target> {
  const { view, managerInstanceId, sessionGrant, transferWriter } = args;
  if (view === "manager-caller") {
    return { managerInstanceId: await managerTarget(targets, row.owner, managerInstanceId, work) };
  }
  if (sessionGrant) return { session: await sessionTarget(targets, row, sessionGrant, work) };
  return transferWriter ? { transferWriter } : {};
}
