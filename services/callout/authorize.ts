/** One connect request from delivery to answer: its turn, the steps, one log line, the counters (identity §9.2). */
import type { Logger } from "pino";
import { AuthorityError, internal, textOf, unavailable } from "../../shared/errors.ts";
import { CALLOUT } from "../../shared/limits.ts";
import { newNonce, type Ports } from "../../shared/ports.ts";
import { isInbox } from "../../shared/tokens.ts";
import { Effects, type Work } from "../../shared/work.ts";
import type { EndpointStatistics } from "../host/statistics.ts";
import type { Turns } from "./admit.ts";
import { type AnswerKeys, admission, denial } from "./answer.ts";
import { type Caller, type ConnectLine, logConnect } from "./log.ts";
import { type ConnectRequest, openRequest, type Sealed } from "./open.ts";
import type { ServerKeys } from "./server-keys.ts";
import type { Entered } from "./steps.ts";

/** A message as it was delivered. */
export interface Delivered extends Sealed {
  readonly reply: string;
}

/** What a decision starts from. */
export interface Asked {
  readonly request: ConnectRequest;
  /** Whether its turn came in time. */
  readonly inTime: boolean;
  readonly work: Work;
  /** Adds to the log line what was learned about who connects. */
  note(caller: Caller): void;
}

/** Decides on one request: the user's JWT, or a thrown denial. `enter` hears of each step before it runs. */
export type Decide = (asked: Asked, enter: (step: Entered) => void) => Promise<{ readonly jwt: string }>;

export interface Authorizing {
  readonly decide: Decide;
  readonly turns: Turns;
  readonly keys: ServerKeys;
  readonly answerKeys: AnswerKeys;
  readonly allowedServers?: readonly string[];
  readonly statistics: EndpointStatistics;
  readonly ports: Ports;
  readonly log: Logger;
  /** Aborts when the service gives up what is still running. */
  readonly stopping: AbortSignal;
  send(target: string, answer: Uint8Array): void;
}

/** Where a broker waits for an answer: the one exception to the inbox rule (identity §9.1). */
const isBrokerInbox = (reply: string): boolean => reply.startsWith("$SYS._INBOX.") && !/[\s*>]/.test(reply);

/** Never rejects: whatever goes wrong ends in a denial or in silence, a count and a log line. */
export async function authorize(authorizing: Authorizing, delivered: Delivered): Promise<void> {
  const { turns, ports, statistics, log } = authorizing;
  const finish = statistics.start(() => ports.monotonic());
  const arrived = ports.monotonic();
  const turn = await turns.take();
  let line: Omit<ConnectLine, "ms">;
  try {
    line = await answer(authorizing, delivered, { arrived, inTime: turn !== undefined });
  } catch (error) {
    line = { ref: newNonce(ports), decision: "silent", code: "internal", reason: textOf(error) };
  } finally {
    turn?.release();
  }
  finish(line.decision === "admitted" ? undefined : failureOf(line));
  logConnect(log, { ...line, ms: Math.round(ports.monotonic() - arrived) });
}

const failureOf = ({ decision, code, reason }: Omit<ConnectLine, "ms">) => ({
  code: code ?? decision,
  message: reason ?? "",
});

async function answer(
  authorizing: Authorizing,
  delivered: Delivered,
  { arrived, inTime }: { readonly arrived: number; readonly inTime: boolean },
): Promise<Omit<ConnectLine, "ms">> {
  const { decide, answerKeys, ports, stopping } = authorizing;
  const ref = newNonce(ports);
  const request = open(authorizing, delivered);
  if ("silent" in request) return { ref, decision: "silent", reason: request.silent };
  const caller: Caller = {};
  const { serverId, client } = request;
  const seen = { ref, serverId, clientHost: client.host, clientId: client.id };
  let entered: Entered | undefined;
  const asked: Asked = {
    request,
    inTime,
    work: { deadline: arrived + CALLOUT.answerMs, signal: stopping, effects: new Effects() },
    note: (more) => Object.assign(caller, more),
  };
  try {
    const { jwt } = await decide(asked, (step) => {
      entered = step;
    });
    authorizing.send(delivered.reply, admission(request, jwt, answerKeys, ports));
    return { ...seen, ...caller, decision: "admitted" };
  } catch (error) {
    const refused = refusalOf(error);
    authorizing.send(delivered.reply, denial(request, { code: refused.code, ref }, answerKeys, ports));
    return {
      ...seen,
      ...caller,
      decision: "denied",
      code: refused.code,
      ...(entered ? { step: entered.number, check: entered.name } : {}),
      reason: refused.reason ?? refused.message,
    };
  }
}

function open({ keys, allowedServers, ports }: Authorizing, delivered: Delivered): ReturnType<typeof openRequest> {
  if (!isBrokerInbox(delivered.reply) && !isInbox(delivered.reply)) return { silent: "no inbox to answer" };
  const now = Math.floor(ports.now() / 1_000);
  return openRequest(delivered, { keys, now, ...(allowedServers ? { allowedServers } : {}) });
}

function refusalOf(error: unknown): AuthorityError {
  if (!(error instanceof AuthorityError)) return internal(textOf(error), error);
  // In time for the broker or not at all: to the client both mean that it may try again.
  return error.code === "deadline-exceeded" ? unavailable("the store was too slow", error) : error;
}
