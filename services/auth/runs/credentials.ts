/** The driver's and the mediator's credential of a run: the same at an attempt and at a renewal (operations §5). */
import { runHolder } from "../../../shared/credentials/roles.ts";
import type { EpGate } from "../../../shared/rows/gate.ts";
import type { RunId, TakeoverId, UserNkey } from "../../../shared/tokens.ts";
import type { Granter } from "../holders.ts";
import { type Credential, credential } from "../issue/mint.ts";
import type { ManagingVisit } from "../visit.ts";

export interface RunKeys {
  readonly runId: RunId;
  readonly takeoverId: TakeoverId;
  readonly driverId: UserNkey;
  readonly mediatorId: UserNkey;
}

export function runCredentials(
  { holder, args }: ManagingVisit<{ instanceId: Credential["holder"]["uid"] }>,
  gate: EpGate,
  { runId, takeoverId, driverId, mediatorId }: RunKeys,
  names: { readonly driver: string; readonly mediator: string },
): Credential[] {
  const triple = { owner: holder.owner, ...runHolder(runId) };
  const granter = mediatorGranter(holder.granter);
  return [
    credential({
      name: names.driver,
      role: "runDriver",
      profile: "run-driver",
      key: driverId,
      holder: triple,
      bindings: { runId, takeoverId },
      runId,
    }),
    credential({
      name: names.mediator,
      role: "runMediator",
      profile: "run-mediator",
      key: mediatorId,
      holder: triple,
      bindings: {
        runId,
        takeoverId,
        instanceId: args.instanceId,
        epoch: gate.processEpoch,
        ...(granter ? { granter } : {}),
      },
      runId,
    }),
  ];
}

/** A run chats as the actor who granted its manager; an assignment has no channels. */
function mediatorGranter(granter: Granter) {
  if (granter.kind === "assignment") return undefined;
  const { owner, actor, lifecycleUid: uid, allowSubscribe, allowPublish } = granter.row.value;
  return { owner, actor, uid, allowSubscribe, allowPublish };
}
