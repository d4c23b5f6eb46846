/** One request to the JetStream API, answered by the stream's leader, and what its errors mean. */
import { errors, type Msg, type NatsConnection, NoRespondersError } from "@nats-io/nats-core";
import { unavailable } from "../errors.ts";
import { request } from "../nats/requests.ts";

/** The broker's own refusal: `err_code` names it. */
export interface ApiError {
  readonly code: number;
  readonly err_code?: number;
  readonly description?: string;
}

/** Numbers of the broker's refusals that the store tells apart (state §2). */
export const BROKER = {
  noMessage: 10037,
  streamNotFound: 10059,
  consumerNotFound: 10014,
  streamNameInUse: 10058,
  wrongLastSequence: 10071,
  wrongLastSequenceConstant: 10164,
  storeFailed: 10077,
  incompleteBatch: 10176,
  tooManyBatches: 10210,
  noMessageBySequence: 10057,
  clusterUnavailable: 10008,
  clusterNotLeader: 10009,
  notEnabledForAccount: 10039,
  notEnabled: 10076,
} as const;

/** JetStream without a leader or not started: nothing is said about the request. */
const NO_ANSWER: readonly number[] = [
  BROKER.clusterUnavailable,
  BROKER.clusterNotLeader,
  BROKER.notEnabledForAccount,
  BROKER.notEnabled,
];

export const isNoAnswer = (error: ApiError): boolean => NO_ANSWER.includes(error.err_code ?? 0);

export const describe = (error: ApiError): string =>
  `${error.err_code ?? error.code} ${error.description ?? ""}`.trim();

/** Asks the API; a fault of the way there or back is `unavailable`, the broker's own error comes back as a value. */
export async function askApi<R extends object>(
  connection: NatsConnection,
  subject: string,
  body: unknown,
  timeoutMs: number,
): Promise<R & { readonly error?: ApiError }> {
  let answer: Msg;
  try {
    answer = await request(connection, `$JS.API.${subject}`, body === undefined ? "" : JSON.stringify(body), {
      timeoutMs: Math.max(1, timeoutMs),
    });
  } catch (error) {
    throw unavailable(`$JS.API.${subject}: ${faultOf(error)}`, error);
  }
  const parsed: R & { readonly error?: ApiError } = parseAnswer(answer, subject);
  if (parsed.error && isNoAnswer(parsed.error)) {
    throw unavailable(`$JS.API.${subject}: ${describe(parsed.error)}`);
  }
  return parsed;
}

function parseAnswer<R>(answer: Msg, subject: string): R {
  try {
    return answer.json<R>();
  } catch (error) {
    throw unavailable(`$JS.API.${subject}: the answer is not JSON`, error);
  }
}

/** Names what kept an answer away. */
export function faultOf(error: unknown): string {
  if (error instanceof errors.TimeoutError) return "timeout";
  if (error instanceof NoRespondersError) return "no responders";
  return error instanceof Error ? error.message : String(error);
}

/** The request was refused before it left, or by a permission: nothing was done. */
export function isRefusedHere(error: unknown): boolean {
  return (
    // Of a subscription it says nothing: the request went out, and its answer is what does not come in.
    (error instanceof errors.PermissionViolationError && error.operation === "publish") ||
    error instanceof errors.ClosedConnectionError ||
    error instanceof errors.DrainingConnectionError ||
    error instanceof errors.InvalidArgumentError ||
    error instanceof errors.InvalidSubjectError
  );
}
