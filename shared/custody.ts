/**
 * Asking the custodian, and what of its answers is believed (lifecycles §2): an answer that parses, echoes the question
 * in order and does not contradict itself. Anything else, and any fault, proves nothing: `false` and `unknown`, never
 * an error. Unknown never counts as gone.
 *
 * ```ts
 * const evictions = await askEvict(client, principals, work, ports);
 * if (!evictions.every(({ verifiedGone }) => verifiedGone)) throw unavailable("…");
 * ```
 */
import { Compile } from "typebox/compile";
import type { AuthorityClient } from "./client.ts";
import { connectionLiveness } from "./contracts/custodian/connection-liveness.ts";
import { evictPrincipals } from "./contracts/custodian/evict-principals.ts";
import { principalLiveness } from "./contracts/custodian/principal-liveness.ts";
import type { Input, Operation, Output } from "./contracts/operation.ts";
import { AuthorityError, headerText } from "./errors.ts";
import { CUSTODIAN } from "./limits.ts";
import type { Tuple } from "./nats/connect.ts";
import type { Ports } from "./ports.ts";
import type { Principal } from "./tokens.ts";
import { timeLeft, type Work } from "./work.ts";

export type Eviction = Output<typeof evictPrincipals>["evictions"][number];
export type PrincipalLiveness = Output<typeof principalLiveness>;
export type ConnectionLiveness = Output<typeof connectionLiveness>;

export type CustodyClient = Pick<AuthorityClient, "call">;

/**
 * Evicts each principal once and says of each whether it is verified gone. More than one request takes are asked
 * for at once, in several. Kicks count among the effects of `work`.
 */
export async function askEvict(
  client: CustodyClient,
  principals: readonly Principal[],
  work: Work,
  ports: Ports,
): Promise<Eviction[]> {
  const distinct = [...new Set(principals)];
  const requests: Principal[][] = [];
  while (distinct.length > 0) requests.push(distinct.splice(0, CUSTODIAN.targetsPerRequest));
  const asked = requests.map(async (some) => {
    const answer = await ask(client, evictPrincipals, { principals: some }, CUSTODIAN.askEvictMs, work, ports);
    const evictions = believeEvictions(some, answer);
    if (answer.unsettled) work.effects.unsettled();
    else if (evictions.some(({ kicked }) => kicked > 0)) work.effects.acked();
    return evictions;
  });
  return (await Promise.all(asked)).flat();
}

/** Whether anyone is connected to the space as this principal. */
export async function askPrincipalLiveness(
  client: CustodyClient,
  principal: Principal,
  work: Work,
  ports: Ports,
): Promise<PrincipalLiveness> {
  const answer = await ask(client, principalLiveness, { principal }, CUSTODIAN.askReadMs, work, ports);
  return believePrincipal(principal, answer);
}

/** Whether two connections to the authority account still are. */
export async function askConnectionLiveness(
  client: CustodyClient,
  tuples: { readonly ledger: Tuple; readonly records: Tuple },
  work: Work,
  ports: Ports,
): Promise<ConnectionLiveness> {
  const answer = await ask(client, connectionLiveness, tuples, CUSTODIAN.askReadMs, work, ports);
  return believeConnections(tuples, answer);
}

/** What came of a question: the data, or why there is none. */
export interface Answer {
  readonly data?: unknown;
  readonly fault?: string;
  /** It may have been carried out all the same. */
  readonly unsettled?: boolean;
}

async function ask<O extends Operation>(
  client: CustodyClient,
  operation: O,
  args: Input<O>,
  budgetMs: number,
  work: Work,
  ports: Ports,
): Promise<Answer> {
  const deadlineMs = Math.floor(Math.min(budgetMs, timeLeft(work, ports)));
  if (deadlineMs < 1 || work.signal?.aborted) return { fault: "no time was left to ask the custodian" };
  const { signal } = work;
  const call = client.call(operation, args, { deadlineMs, ...(signal ? { signal } : {}) });
  const answer = (operation.effect === "write" ? work.effects.during(call) : call).then(
    (data): Answer => ({ data }),
    (error: unknown): Answer => {
      if (!(error instanceof AuthorityError)) return { fault: "the custodian could not be asked", unsettled: true };
      const unsettled = error.outcome !== "not-executed";
      return { fault: `the custodian answers ${error.code}: ${error.message}`, unsettled };
    },
  );
  return signal ? unlessAborted(answer, signal) : answer;
}

/** Whoever asks may have to stop long before a sweep ends. */
function unlessAborted(answer: Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve) => {
    const answered = new AbortController();
    const giveUp = () => resolve({ fault: "the question was given up", unsettled: true });
    signal.addEventListener("abort", giveUp, { once: true, signal: answered.signal });
    void answer.then((result) => {
      answered.abort();
      resolve(result);
    });
  });
}

const evictionsOf = Compile(evictPrincipals.output);
const principalOf = Compile(principalLiveness.output);
const connectionsOf = Compile(connectionLiveness.output);

const UNREADABLE = "the custodian's answer is unreadable";
const OTHER_QUESTION = "the custodian's answer is to another question";

/** In the order of `principals`. */
export function believeEvictions(principals: readonly Principal[], { data, fault }: Answer): Eviction[] {
  const nothing = (note: string): Eviction[] =>
    principals.map((principal) => ({ principal, ...UNPROVEN, note: headerText(note) }));
  if (fault !== undefined) return nothing(fault);
  if (!evictionsOf.Check(data)) return nothing(UNREADABLE);
  const { evictions } = data;
  const echoes =
    evictions.length === principals.length &&
    evictions.every(({ principal }, index) => principal === principals[index]);
  if (!echoes) return nothing(OTHER_QUESTION);
  return evictions.map((eviction) => ({
    ...eviction,
    verifiedGone: eviction.verifiedGone && eviction.scanComplete && eviction.remaining === 0,
  }));
}

const UNPROVEN = { kicked: 0, remaining: 0, verifiedGone: false, scanComplete: false } as const;

export function believePrincipal(principal: Principal, { data, fault }: Answer): PrincipalLiveness {
  const nothing = (note: string): PrincipalLiveness => ({
    principal,
    state: "unknown",
    sweepComplete: false,
    note: headerText(note),
  });
  if (fault !== undefined) return nothing(fault);
  if (!principalOf.Check(data)) return nothing(UNREADABLE);
  if (data.principal !== principal) return nothing(OTHER_QUESTION);
  return { ...data, state: believedState(data.state, data.sweepComplete) };
}

export function believeConnections(
  { ledger, records }: { readonly ledger: Tuple; readonly records: Tuple },
  { data, fault }: Answer,
): ConnectionLiveness {
  const nothing = (note: string): ConnectionLiveness => ({
    ledger: { tuple: ledger, state: "unknown" },
    records: { tuple: records, state: "unknown" },
    sweepComplete: false,
    note: headerText(note),
  });
  if (fault !== undefined) return nothing(fault);
  if (!connectionsOf.Check(data)) return nothing(UNREADABLE);
  if (!sameTuple(data.ledger.tuple, ledger) || !sameTuple(data.records.tuple, records)) {
    return nothing(OTHER_QUESTION);
  }
  const { sweepComplete } = data;
  return {
    ...data,
    ledger: { tuple: ledger, state: believedState(data.ledger.state, sweepComplete) },
    records: { tuple: records, state: believedState(data.records.state, sweepComplete) },
  };
}

function believedState(state: PrincipalLiveness["state"], sweepComplete: boolean): PrincipalLiveness["state"] {
  return state === "gone" && !sweepComplete ? "unknown" : state;
}

function sameTuple(one: Tuple, other: Tuple): boolean {
  return one.serverId === other.serverId && one.cid === other.cid && one.userNkey === other.userNkey;
}
