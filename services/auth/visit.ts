/** The road's last stretch in `auth`: caller, scope and the common checks C2 to C5, then the handler (operations §1). */
import type { Input, Operation, Output } from "../../shared/contracts/operation.ts";
import { AuthorityError, internal } from "../../shared/errors.ts";
import { UserNkey } from "../../shared/tokens.ts";
import type { Endpoint, Request } from "../host/handler.ts";
import { resolveHolder } from "./callers.ts";
import type { AuthContext } from "./context.ts";
import { assertScope } from "./granters.ts";
import type { Holder, ManagingHolder } from "./holders.ts";
import { asked, askedBy } from "./seen.ts";

export interface Visit<Args = unknown> extends Request<Args> {
  readonly context: AuthContext;
  readonly holder: Holder;
  readonly operation: Operation;
}

export type AuthHandler<O extends Operation> = (visit: Visit<Input<O>>) => Promise<Output<O>>;

/** A visit of somebody who acts for manager instances. */
export type ManagingVisit<Args> = Visit<Args> & { readonly holder: ManagingHolder };

const MANAGING: ReadonlySet<Holder["kind"]> = new Set(["human", "manager", "platform", "supervisor"]);

export function managing<Args>(visit: Visit<Args>): ManagingVisit<Args> {
  if (!MANAGING.has(visit.holder.kind)) throw internal(`${visit.operation.name} admits holders it cannot serve`);
  return visit as ManagingVisit<Args>;
}

/** Resolves the holder anew; a decision that runs again after a touch starts here. */
export async function revisit<Args>(visit: ManagingVisit<Args>): Promise<ManagingVisit<Args>> {
  // A door resolved its holder from the assignment; `recheckGranter` reads that row again after the gate.
  if (visit.holder.kind === "platform" || visit.holder.kind === "supervisor") return visit;
  return managing({ ...visit, holder: await resolveHolder(visit.context, visit, visit.operation) });
}

/** Checks C3 to C5, which hold for a door's inner request as well. */
function commonChecks({ context, holder, operation, args }: Visit): void {
  if (operation.scope && "granter" in holder) assertScope(holder.granter, operation.scope);
  const keys = nkeysOf(args);
  if (new Set(keys).size !== keys.length) throw new AuthorityError("bad-request", "the nkeys of a request must differ");
  const { space } = (args ?? {}) as { space?: string };
  if (space !== undefined && space !== context.space) {
    throw new AuthorityError("permission-denied", "this is another space");
  }
}

/** Every nkey of the request but a session's, which is its manager's own choice (C4). */
function nkeysOf(args: unknown): string[] {
  const found: string[] = [];
  const visit = (value: unknown): void => {
    if (UserNkey.is(value)) found.push(value);
    else if (value !== null && typeof value === "object") {
      for (const [name, member] of Object.entries(value)) {
        if (name !== "session" && name !== "contractArtifacts" && name !== "request") visit(member);
      }
    }
  };
  visit(args);
  return found;
}

/** From the holder on: the log's fields, C3 to C5, the handler. A door comes here with its inner request. */
export async function proceed<Args, Result>(
  visit: Visit<Args>,
  { handle }: { handle(visit: Visit<Args>): Promise<Result> },
): Promise<Result> {
  visit.note(askedBy(visit.holder));
  commonChecks(visit);
  return handle(visit);
}

/** An operation with its handler, whichever it is. */
export interface Answered {
  readonly operation: Operation;
  handle(visit: Visit<never>): Promise<unknown>;
}

export const authEndpoint = (context: AuthContext, { operation, handle }: Answered): Endpoint => ({
  operation,
  handle: async (request: Request<never>) => {
    request.note(asked(request.args));
    const holder = await resolveHolder(context, request, operation);
    return proceed<never, unknown>({ ...request, context, holder, operation }, { handle });
  },
});
