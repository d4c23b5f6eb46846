/** The five standing credentials of a manager instance, as wishes that `issue` mints (state §5, roles). */

import type { ProfileName } from "../../../shared/credentials/profiles.ts";
import { ROLES } from "../../../shared/credentials/roles.ts";
import type { EpGate } from "../../../shared/rows/gate.ts";
import type { Mode } from "../../../shared/subjects.ts";
import type { Actor, UserNkey } from "../../../shared/tokens.ts";
import { MANAGER } from "../context.ts";
import { type Credential, credential } from "../issue/mint.ts";
import type { ManagerArgs } from "../registration/check.ts";
import type { ManagingVisit } from "../visit.ts";

type Standing = "supervisor" | "executor" | "serve" | "goalWriter" | "sessionLedger";

/** One command of the registered serve surface, as far as its permissions depend on it. */
export interface ServedCommand {
  readonly name: string;
  readonly modes: readonly Mode[];
}

/** `commands` is the registered serve surface, and used for `serve` alone. */
export function standing(
  { args, holder }: ManagingVisit<ManagerArgs>,
  role: Standing,
  gate: Pick<EpGate, "processEpoch">,
  commands: readonly ServedCommand[] = [],
): Credential {
  const { instanceId, managerLifecycleUid, identities } = args;
  const base = {
    name: role,
    role,
    key: identities[role].id as UserNkey,
    holder: { owner: holder.owner, actor: ROLES[role].actor({ instanceId }) as Actor, uid: managerLifecycleUid },
  };
  const plain = (profile: ProfileName, bindings: object = {}): Credential =>
    credential({ ...base, profile, bindings } as Credential);
  const wishes: { readonly [R in Standing]: () => Credential } = {
    supervisor: () => plain("supervisor"),
    executor: () => plain("executor", { instanceId }),
    serve: () =>
      plain("endpoint-serve", {
        endpoint: MANAGER,
        instanceId,
        epoch: gate.processEpoch,
        commands: commands.map(({ name, modes }) => ({ name, modes: [...modes] })),
        pools: [],
      }),
    goalWriter: () => plain("goal-writer"),
    sessionLedger: () => plain("session-ledger"),
  };
  return wishes[role]();
}
