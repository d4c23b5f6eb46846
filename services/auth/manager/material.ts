/** What an issuing operation of the manager family answers: `Material` of operations §2. */
import { actorsOf } from "../../../shared/credentials/roles.ts";
import type { Issued } from "../issue/issue.ts";
import type { ManagerArgs } from "../registration/check.ts";
import type { ManagingVisit } from "../visit.ts";

type Args<K extends string> = ManagerArgs & { v: 1; kind: "manager-service-authority"; operation: K };

/** Members that every answer has; objects are returned as received, since clients compare serialised text. */
export function material<A extends Args<string>>(
  { args, holder }: ManagingVisit<A>,
  { issuedAt, expiresAt }: Pick<Issued, "issuedAt" | "expiresAt">,
) {
  type Given = A extends { space: infer S; actor: infer C; requestId: infer R; identities: infer I; operation: infer O }
    ? { space: S; actor: C; requestId: R; identities: I; operation: O }
    : never;
  const { space, actor, requestId, identities, operation } = args as A & Given;
  return {
    v: 1 as const,
    kind: "manager-service-authority" as const,
    operation: operation as Given["operation"],
    space: space as Given["space"],
    owner: holder.owner,
    actor: actor as Given["actor"],
    instanceId: args.instanceId,
    lifecycleUid: args.managerLifecycleUid,
    requestId: requestId as Given["requestId"],
    issuedAt,
    expiresAt,
    actors: actorsOf(args.instanceId),
    identities: identities as Given["identities"],
  };
}

/** The one credential of that name; an operation always mints what its contract names. */
export function named({ credentials }: Pick<Issued, "credentials">, name: string) {
  const signed = credentials[name];
  if (!signed) throw new TypeError(`no credential ${name} was minted`);
  return signed;
}
