/** Refusals as HTTP: the number of the code is the status (identity §11.3, wire §5). */
import { AuthorityError, type ErrorCode, headerText, isErrorCode, type Outcome } from "../shared/errors.ts";

/** A fault of HTTP itself, with HTTP's own status (identity §11.2). */
export class HttpFault extends Error {
  readonly status: 400 | 404 | 405 | 413 | 415 | 503;
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: HttpFault["status"],
    code: ErrorCode,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

export interface Problem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly error: string; readonly code: string; readonly outcome?: string };
}

/**
 * What anything thrown looks like from outside. Only what an `AuthorityError` says in public leaves the process.
 * `outcome` is what became of the request where the error states nothing; without it the body has none.
 */
export function problemOf(error: unknown, outcome?: Outcome): Problem {
  if (error instanceof HttpFault) {
    const { status, code, message, headers } = error;
    return { status, headers, body: { error: message, code, ...(outcome ? { outcome: "not-executed" } : {}) } };
  }
  const refusal = catalogued(error);
  const seconds = retryAfter(refusal);
  return {
    status: refusal.number,
    headers: seconds === undefined ? {} : { "retry-after": String(seconds) },
    body: { error: textOf(refusal), code: refusal.code, ...(outcome ? { outcome: refusal.outcome ?? outcome } : {}) },
  };
}

/** Whatever is not in the catalogue is `internal`, without a detail. */
function catalogued(error: unknown): AuthorityError {
  if (error instanceof AuthorityError && isErrorCode(error.code)) return error;
  return new AuthorityError("internal", "internal error");
}

/** A proven person learns the owner to be granted, and no command that would grant it (identity §6). */
function textOf({ message, details }: AuthorityError): string {
  const detail = details.find(({ kind }) => kind === "ai.cotal.auth.no-actor");
  if (detail?.kind !== "ai.cotal.auth.no-actor") return message;
  return headerText(`${message}: owner ${detail.owner}, actor ${detail.actor}`);
}

function retryAfter({ details }: AuthorityError): number | undefined {
  const detail = details.find(({ kind }) => kind === "ai.cotal.ep.retry-after");
  if (detail?.kind !== "ai.cotal.ep.retry-after" || !Number.isSafeInteger(detail.seconds)) return undefined;
  return detail.seconds;
}
