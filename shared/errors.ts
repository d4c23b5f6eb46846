/**
 * Every code an operation may answer with, and the one error that carries it (wire specification §5).
 *
 * The number is `Nats-Service-Error-Code` on the rail and the HTTP status at the gateway.
 */
const ERROR_NUMBERS = {
  "bad-request": 400,
  "unsupported-version": 400,
  "op-mismatch": 400,
  "class-mismatch": 400,
  "target-mismatch": 400,
  "sender-mismatch": 400,
  unauthenticated: 401,
  "permission-denied": 403,
  "not-found": 404,
  "already-exists": 409,
  conflict: 409,
  expired: 410,
  "failed-precondition": 412,
  "contract-mismatch": 412,
  "contract-invalid": 422,
  "resource-exhausted": 429,
  cancelled: 499,
  internal: 500,
  unimplemented: 501,
  unavailable: 503,
  "deadline-exceeded": 504,
} as const;

export type ErrorCode = keyof typeof ERROR_NUMBERS;

/** What became of the request's effect. Absent reads as `unknown`. */
export type Outcome = "executed" | "not-executed" | "unknown";

export type PlaneRefusal =
  | "corrupt"
  | "live-peer"
  | "unknown"
  | "concurrent"
  | "fenced"
  | "released"
  | "lost"
  | "release-unreachable";

/** Structured details; callers branch on `kind`, never on prose. At most 8, 2,048 bytes together. */
export type ErrorDetail =
  | { kind: "ai.cotal.ep.bind-refused"; instanceId: string; epoch: number }
  | { kind: "ai.cotal.ep.unbound-responder" }
  | { kind: "ai.cotal.ep.unbound-caller-authority"; owner: string; actor: string; uid: string }
  | { kind: "ai.cotal.ep.validation"; errors: { path: string; message: string }[] }
  | { kind: "ai.cotal.ep.retry-after"; seconds: number }
  | { kind: "ai.cotal.auth.plane-claim-refused"; reason: PlaneRefusal }
  | { kind: "ai.cotal.auth.no-actor"; owner: string; actor: string }
  | { kind: "ai.cotal.auth.current-lifecycle"; lifecycleUid: string }
  | {
      kind: "ai.cotal.auth.drain-blocked";
      opId: string;
      rows: { key: string; state: string; route?: string }[];
      more: number;
    }
  | { kind: "ai.cotal.auth.op-held"; opId: string; opKind: string }
  | { kind: "ai.cotal.auth.incarnation"; instanceId: string; epoch: number };

const MAX_TEXT_BYTES = 256;

/** One line of printable ASCII that fits a header: control characters and everything beyond ASCII become `?`. */
export function headerText(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "?").slice(0, MAX_TEXT_BYTES);
}

/**
 * The only error thrown on purpose. `message` is public and leaves the process;
 * `reason` is private and goes to the log under the request id.
 */
export class AuthorityError extends Error {
  readonly code: ErrorCode;
  readonly details: readonly ErrorDetail[];
  readonly reason: string | undefined;
  /** Set where only the thrower knows what became of a write; otherwise the host decides. */
  readonly outcome: Outcome | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    more: { details?: readonly ErrorDetail[]; reason?: string; outcome?: Outcome; cause?: unknown } = {},
  ) {
    super(headerText(message), more.cause === undefined ? undefined : { cause: more.cause });
    this.name = "AuthorityError";
    this.code = code;
    this.details = more.details ?? [];
    this.reason = more.reason;
    this.outcome = more.outcome;
  }

  get number(): number {
    return ERROR_NUMBERS[this.code];
  }
}

/** Corruption, impossible state: one fixed public sentence, the reason only in the log. */
export function internal(reason: string, cause?: unknown): AuthorityError {
  return new AuthorityError("internal", "internal error", { reason, cause });
}

/** A store, peer or broker that cannot be read; the caller may ask again. */
export function unavailable(reason: string, cause?: unknown, outcome?: Outcome): AuthorityError {
  return new AuthorityError("unavailable", "the authority cannot answer now, ask again", { reason, cause, outcome });
}

export function isAuthorityError(error: unknown, code?: ErrorCode): error is AuthorityError {
  return error instanceof AuthorityError && (code === undefined || error.code === code);
}

export function isErrorCode(value: string): value is ErrorCode {
  return Object.hasOwn(ERROR_NUMBERS, value);
}

/** The text of anything thrown, for logs only. */
export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Why it was thrown, for logs only: the private reason of an `AuthorityError` where it has one. */
export function reasonOf(error: unknown): string {
  return (isAuthorityError(error) ? error.reason : undefined) ?? textOf(error);
}
