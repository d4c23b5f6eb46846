/**
 * The fields that every operation's one log line has, where they occur (operations, before §1): who asks, and what the
 * arguments name. Never a token, seed or JWT. A handler adds what only it learns.
 */
import { type Actor, type Owner, principalOf } from "../../shared/tokens.ts";
import { actorOf, type Holder } from "./holders.ts";

type Fields = Record<string, unknown>;

/** Names of members, outermost first. */
type Path = readonly string[];

const path = (text: string): Path => text.split(".").filter((name) => name !== "");

/** Taken apart once, as every request is looked through. */
const paths = (named: Readonly<Record<string, readonly string[]>>): [string, Path[]][] =>
  Object.entries(named).map(([field, texts]) => [field, texts.map(path)]);

/** Where the arguments of the operations name each of them. */
const NAMED = paths({
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
});

/** Which of the arguments name a principal; those that say so at the top are about an actor's row. */
const TARGETS = ["target", "retirement.target", "session.holder", "caller", ""].map(path);

/** What is asked for, known before who asks. */
export function asked(args: unknown): Fields {
  const named = NAMED.map(([field, places]) => [field, first(places, (place) => at(args, place))] as const);
  const target = first(TARGETS, (place) => principalAt(args, place));
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

/** The first of some values that is there. */
function first<T, V>(from: readonly T[], of: (one: T) => V | undefined): V | undefined {
  for (const one of from) {
    const value = of(one);
    if (value !== undefined) return value;
  }
  return undefined;
}

const at = (args: unknown, place: Path): unknown =>
  place.reduce((value: unknown, name) => (value as Fields | null | undefined)?.[name], args);

function principalAt(args: unknown, place: Path): string | undefined {
  const { owner, actor } = (at(args, place) ?? {}) as { owner?: Owner; actor?: Actor };
  return owner === undefined || actor === undefined ? undefined : principalOf(owner, actor);
}
