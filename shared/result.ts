/** Refusals as values: what the typed clients of the authority give back instead of throwing. */
import type { Input, Operation, Output } from "./contracts/operation.ts";
import { AuthorityError, type ErrorCode, type ErrorDetail, isAuthorityError, type Outcome } from "./errors.ts";

/** A refusal, from the closed set of codes; `outcome` says what became of the request's effect (wire §5). */
export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly outcome: Outcome;
  readonly details: readonly ErrorDetail[];
}

export type Result<T> = { readonly ok: true; readonly data: T } | { readonly ok: false; readonly error: Failure };

/** Operations by the name of the function that asks for each. */
export type Api = Readonly<Record<string, Operation>>;

/** One function per operation, typed by its declaration. `O` are the options of one call. */
export type Calls<A extends Api, O> = {
  readonly [N in keyof A]: (args: Input<A[N]>, options?: O) => Promise<Result<Output<A[N]>>>;
};

/** The functions of an API over some transport, which throws an `AuthorityError` to refuse. */
export function callsOf<A extends Api, O>(
  api: A,
  ask: (operation: Operation, args: unknown, options: O | undefined) => Promise<unknown>,
): Calls<A, O> {
  const calls = Object.entries(api).map(([name, operation]) => [
    name,
    (args: unknown, options?: O) => settled(ask(operation, args, options)),
  ]);
  return Object.fromEntries(calls) as Calls<A, O>;
}

/** Only what the authority says becomes a value; anything else that is thrown is a fault of the program's own. */
async function settled(asked: Promise<unknown>): Promise<Result<unknown>> {
  try {
    return { ok: true, data: await asked };
  } catch (error) {
    if (!isAuthorityError(error)) throw error;
    const { code, message, outcome = "unknown", details } = error;
    return { ok: false, error: { code, message, outcome, details } };
  }
}

/** The data, or the refusal thrown: for a caller that has nothing to do about it. */
export function orThrow<T>(result: Result<T>): T {
  if (result.ok) return result.data;
  const { code, message, outcome, details } = result.error;
  throw new AuthorityError(code, message, { outcome, details });
}
