/**
 * The fields that every operation's one log line has, where they occur (operations, before §1): who asks, and what the
 * arguments name. Never a token, seed or JWT. A handler adds what only it learns.
 */
import { type Actor, type Owner, principalOf } from "../../shared/tokens.ts";
import { actorOf, type Holder } from "./holders.ts";

type Fields = Record<string, unknown>;

/** Where the arguments of the operations name each of them. */
const NAMED: Readonly<Record<string, readonly string[]>> = {
  requestId: ["requestId"],
  owner: ["owner"],
  instanceId: ["instanceId", "serveInstanceId"],
  targetInstanceId: ["targetInstanceId"],
  lifecycleUid: [
    "lifecycleUid",
    "target.lifecycleUid",
    "retirement.target.lifecycleUid",
    "session.holder.lifecycleUid",
    "caller.lifecycleUid",
  ],
  opId: ["opId", "retirement.opId"],
  runId: ["run.runId", "attempt.runId", "operator.runId", "operator.answers.runId", "revoke.runId"],
  takeoverId: ["run.takeoverId", "attempt.takeoverId", "operator.takeoverId"],
  epoch: ["run.epoch", "attempt.epoch"],
  sessionId: ["sessionId", "session.sessionId"],
  processEpoch: ["processEpoch", "serveEpoch", "session.epoch", "retirement.serveEpoch"],
};

/** Which of the arguments name a principal; those that say so at the top are about an actor's row. */
const TARGETS = ["target", "retirement.target", "session.holder", "caller", ""] as const;

/** What is asked for, known before who asks. */
export function asked(args: unknown): Fields {
  const named = Object.entries(NAMED).map(([field, paths]) => [field, first(args, paths)] as const);
  const target = TARGETS.map((path) => principalAt(args, path)).find((found) => found !== undefined);
  return Object.fromEntries([...named, ["target", target] as const].filter(([, value]) => value !== undefined));
}

/** Who asks: on whose strength, where that is another than the subject's caller. */
export function askedBy(holder: Holder): Fields {
  const { kind } = holder;
  if ("granter" in holder) {
    const { owner, granter, instanceId } = holder;
    return { holder: kind, owner, actor: actorOf(granter), ...(instanceId === undefined ? {} : { instanceId }) };
  }
  if (holder.kind === "admin") return { holder: kind, owner: holder.owner, actor: holder.row.value.actor };
  if ("owner" in holder) return { holder: kind, owner: holder.owner, actor: holder.actor };
  return { holder: kind };
}

const first = (args: unknown, paths: readonly string[]): unknown =>
  paths.map((path) => at(args, path)).find((value) => value !== undefined);

const at = (args: unknown, path: string): unknown =>
  path
    .split(".")
    .filter((name) => name !== "")
    .reduce((value: unknown, name) => (value as Fields | null | undefined)?.[name], args);

function principalAt(args: unknown, path: string): string | undefined {
  const { owner, actor } = (at(args, path) ?? {}) as { owner?: Owner; actor?: Actor };
  return owner === undefined || actor === undefined ? undefined : principalOf(owner, actor);
}
