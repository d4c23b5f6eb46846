/**
 * The operations of a manager over HTTP, for whoever has a person's login and no credentials yet: the functions of
 * `authority.ts`, as far as `POST /manager-service-authority` reaches.
 *
 * ```ts
 * import { managerHttp } from "./shared/manager-http.ts";
 * import { systemPorts } from "./shared/ports.ts";
 *
 * const { userAuth } = await (await fetch(`${meshUrl}/.well-known/cotal-mesh`)).json();
 * const ask = managerHttp({ url: userAuth.endpoints.managerAuthorityUrl, idpToken: () => login(), ports: systemPorts });
 * const prepared = await ask.managerPrepare(request);
 * if (prepared.ok) console.log(prepared.data.credentials.supervisor.exp);
 * else console.log(prepared.error.code);
 * ```
 *
 * HTTP carries no details of a refusal but how long to wait.
 */
import { authApi } from "./contracts/auth.ts";
import { AuthorityError, type ErrorDetail, isErrorCode, type Outcome } from "./errors.ts";
import { GATEWAY } from "./limits.ts";
import type { Ports } from "./ports.ts";
import { type Asking, repeating } from "./repeat.ts";
import { type Api, type Calls, callsOf } from "./result.ts";

/** The operations that have a kind of HTTP body. */
export type OverHttp<A extends Api> = {
  readonly [N in keyof A as NonNullable<A[N]["http"]> extends never ? never : N]: A[N];
};

export type ManagerHttp = Calls<OverHttp<typeof authApi>, Asking>;

export interface ManagerHttpOptions {
  /** The whole address, as the discovery document names it. */
  readonly url: string;
  /** A login at the identity provider, asked for at every request. What it throws is thrown on. */
  readonly idpToken: () => string | Promise<string>;
  /** The capability of the loopback face, where that is asked. */
  readonly capability?: string;
  readonly ports: Ports;
}

export function managerHttp(options: ManagerHttpOptions): ManagerHttp {
  const reachable = Object.fromEntries(Object.entries(authApi).filter(([, { http }]) => http !== undefined));
  return callsOf(reachable as OverHttp<typeof authApi>, (operation, request, asking: Asking = {}) =>
    repeating(operation, options.ports, asking, (leftMs) => post(options, request, leftMs, asking.signal)),
  );
}

async function post(
  { url, idpToken, capability }: ManagerHttpOptions,
  request: unknown,
  leftMs: number,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const body = JSON.stringify({ idpToken: await idpToken(), request });
  const timeout = AbortSignal.timeout(Math.min(leftMs, GATEWAY.managerReplyMs));
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(capability === undefined ? {} : { authorization: `Bearer ${capability}` }),
    },
    body,
    signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
    redirect: "error",
  }).catch((cause: unknown) => {
    throw silence(cause, signal);
  });
  const answer = await response.json().catch((cause: unknown) => {
    throw silence(cause, signal);
  });
  if (response.ok) return answer;
  throw refusalOf(response, answer);
}

/** A connection that was refused never carried the request; of anything else nobody knows. */
function silence(cause: unknown, signal: AbortSignal | undefined): AuthorityError {
  if (signal?.aborted)
    return new AuthorityError("cancelled", "given up before its answer", { outcome: "unknown", cause });
  const outcome = refusedConnection(cause) ? "not-executed" : "unknown";
  return new AuthorityError("unavailable", "no answer in time", { outcome, cause });
}

const NEVER_SENT: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]);

function refusedConnection(error: unknown): boolean {
  const { cause } = error as { cause?: { code?: unknown } };
  return NEVER_SENT.has(cause?.code);
}

/** What the gateway says; a proxy's own page says nothing about the request. */
function refusalOf(response: Response, answer: unknown): AuthorityError {
  const { code, error, outcome } = (answer ?? {}) as { code?: unknown; error?: unknown; outcome?: unknown };
  if (typeof code !== "string" || !isErrorCode(code) || typeof error !== "string") {
    return new AuthorityError("unavailable", `HTTP ${response.status} without a reason`, { outcome: "unknown" });
  }
  const seconds = Number(response.headers.get("retry-after") ?? "none");
  const details: ErrorDetail[] = Number.isSafeInteger(seconds) ? [{ kind: "ai.cotal.ep.retry-after", seconds }] : [];
  return new AuthorityError(code, error, { outcome: outcomeOf(outcome), details });
}

const OUTCOMES: ReadonlySet<unknown> = new Set<Outcome>(["executed", "not-executed", "unknown"]);
const outcomeOf = (given: unknown): Outcome => (OUTCOMES.has(given) ? (given as Outcome) : "unknown");
