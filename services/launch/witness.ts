/** What the tour waits to see: a refusal by its code, and a permission that the broker denied. */
import { once } from "node:events";
import { type NatsConnection, PermissionViolationError } from "@nats-io/nats-core";
import { AuthorityError, isAuthorityError } from "../../shared/errors.ts";

const WAIT_MS = 5_000;

/** The refusal that must come; anything else fails the step. */
export async function refusalOf(call: Promise<unknown>, code: AuthorityError["code"]): Promise<AuthorityError> {
  const outcome = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (isAuthorityError(outcome, code)) return outcome;
  throw outcome ?? new AuthorityError("internal", `this should have been refused with ${code}`);
}

/** What the broker refused, as the connection's own status says. */
export async function violationOf(connection: NatsConnection, act: () => void): Promise<string> {
  const statuses = connection.status();
  act();
  const seen = (async () => {
    for await (const status of statuses) {
      if (status.type === "error" && status.error instanceof PermissionViolationError) return status.error.subject;
    }
    throw new AuthorityError("internal", "the connection ended");
  })();
  return within(seen, "the broker refused nothing");
}

export async function within<T>(promise: Promise<T>, message: string): Promise<T> {
  const timeout = AbortSignal.timeout(WAIT_MS);
  const late = once(timeout, "abort").then(() => {
    throw new AuthorityError("deadline-exceeded", message);
  });
  return Promise.race([promise, late]);
}
