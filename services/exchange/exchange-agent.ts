/** An agent's own token becomes a bearer, as long as its parents still cover it (identity §6, §8). */
import { timingSafeEqual } from "node:crypto";
import { assertAttenuated } from "../../shared/attenuation.ts";
import { sha256Hex } from "../../shared/canonical.ts";
import { exchangeAgent } from "../../shared/contracts/exchange/exchange-agent.ts";
import type { Input } from "../../shared/contracts/operation.ts";
import { AuthorityError } from "../../shared/errors.ts";
import { type Actor, actorRows } from "../../shared/rows/actor.ts";
import type { Reader } from "../../shared/store/store.ts";
import { viewRule } from "../../shared/views.ts";
import type { Work } from "../../shared/work.ts";
import { endpoint } from "../host/handler.ts";
import { assertView, faceOf } from "./callers.ts";
import type { ExchangeDeps } from "./deps.ts";
import { rootOf } from "./root.ts";
import { signGrant } from "./sign.ts";
import { managerTarget } from "./target.ts";

type Args = Input<typeof exchangeAgent>;

export const exchangeAgentEndpoint = (deps: ExchangeDeps) =>
  endpoint(exchangeAgent, async (request) => {
    const { args, work, ports } = request;
    const { view, ttlSec, managerInstanceId } = args;
    const { store } = deps.targets;
    if (managerInstanceId !== undefined && view !== "manager-caller") {
      throw new AuthorityError("bad-request", "an argument without its view");
    }
    assertView(view, faceOf(request.caller));
    if (!viewRule(view).managed) throw new AuthorityError("permission-denied", "this view is not given to agents");
    const row = await agentRow(store, args, work);
    request.occupy(row.owner);
    request.note({ owner: row.owner, actor: row.actor, view });
    await assertAttenuated(
      row,
      async (owner, actor) => (await store.read(actorRows.key({ owner, actor }), work))?.value,
    );
    const root = await rootOf(store, row, ports.now(), work);
    const target =
      view === "manager-caller"
        ? { managerInstanceId: await managerTarget(deps.targets, row.owner, managerInstanceId, work) }
        : {};
    return signGrant(deps.trust.issuing, deps.space, { row, root, view, ttlSec, target }, ports);
  });

const NOBODY = sha256Hex("");

/** Absent, wrong kind, revoked and wrong token take the same way to the same sentence. */
async function agentRow(store: Reader, { owner, actor, actorToken }: Args, work: Work): Promise<Actor> {
  const row = (await store.read(actorRows.key({ owner, actor }), work))?.value;
  const agent = row?.kind === "managed" && row.state === "active" ? row : undefined;
  const expected = Buffer.from(agent?.tokenHash ?? NOBODY, "hex");
  const same = timingSafeEqual(Buffer.from(sha256Hex(actorToken), "hex"), expected);
  if (agent && same) return agent;
  throw new AuthorityError("unauthenticated", "there is no such agent, or its token is another", {
    reason: agent ? "wrong token" : "no active managed row",
  });
}
