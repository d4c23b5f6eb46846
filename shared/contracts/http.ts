/** The gateway map: which operation an HTTP body means (operations §4). */
import { AuthorityError } from "../errors.ts";
import { authOperations } from "./auth.ts";
import type { Operation } from "./operation.ts";

/** Catalogued on the mesh, served by nobody here. */
const UNSERVED: ReadonlySet<unknown> = new Set(["delegated-user-intent", "manager-delegated-user-intent-execution"]);

/** By `kind`, then by `operation`, the member that is there, or neither: a kind is told apart in one way only. */
const byKind = new Map<string, Operation[]>();
for (const operation of authOperations) {
  if (!operation.http) continue;
  const same = byKind.get(operation.http.kind);
  if (same) same.push(operation);
  else byKind.set(operation.http.kind, [operation]);
}

/**
 * The operation that a request of `POST /manager-service-authority`, or the inner request of a door, asks for.
 * `unimplemented` for the kinds of delegated intent; `bad-request` for any other that is not in the map, both doors
 * included, and where the members that tell two operations of one kind apart are both there or both missing.
 * Everything else about the request is the input schema's to judge.
 */
export function operationOfHttp(request: unknown): Operation {
  if (typeof request !== "object" || request === null) throw unmapped();
  const own = new Map<string, unknown>(Object.entries(request));
  const kind = own.get("kind");
  if (UNSERVED.has(kind)) throw new AuthorityError("unimplemented", "delegated intents are not served");
  const found = typeof kind === "string" ? (byKind.get(kind) ?? []) : [];
  const [first, ...others] = found.filter(({ http }) => {
    if (http?.operation !== undefined) return own.get("operation") === http.operation;
    return http?.member === undefined || own.has(http.member);
  });
  if (!first || others.length > 0) throw unmapped();
  return first;
}

const unmapped = () => new AuthorityError("bad-request", "no operation has this kind of request");
