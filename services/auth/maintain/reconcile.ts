/** Opens the gate that a dead registrant left frozen, once its whole family is proven gone (operations §7, lifecycles §6). */
import type { managerMaintainReconcile } from "../../../shared/contracts/auth/maintain/reconcile.ts";
import type { Output } from "../../../shared/contracts/operation.ts";
import { ROLES } from "../../../shared/credentials/roles.ts";
import { askPrincipalLiveness } from "../../../shared/custody.ts";
import { AuthorityError, unavailable } from "../../../shared/errors.ts";
import { CUSTODIAN } from "../../../shared/limits.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type EpGate, epGateRows } from "../../../shared/rows/gate.ts";
import { swap } from "../../../shared/store/message.ts";
import { principalOf, type Uid } from "../../../shared/tokens.ts";
import { gateFenced } from "../barrier/kinds.ts";
import { runBarrier } from "../barrier/run.ts";
import { MANAGER } from "../context.ts";
import { servePrincipal } from "../registration/check.ts";
import { familyRows } from "../registration/registrar.ts";
import { type AuthHandler, type ManagingVisit, managing } from "../visit.ts";

type Visit = ManagingVisit<Parameters<AuthHandler<typeof managerMaintainReconcile>>[0]["args"]>;
type Reconciliation = Output<typeof managerMaintainReconcile>["reconciliation"];

const denied = (message: string): AuthorityError => new AuthorityError("permission-denied", message);

export const handleManagerMaintainReconcile: AuthHandler<typeof managerMaintainReconcile> = async (given) => {
  const visit = managing(given);
  const { args, holder } = visit;
  const { v, kind, operation, space, actor, instanceId, managerLifecycleUid, requestId } = args;
  const { identities, targetInstanceId } = args;
  if (targetInstanceId !== instanceId && holder.kind !== "human") {
    throw denied("only a person repairs another instance than the own");
  }
  const gate = await deadGate(visit);
  visit.note({ opId: gate.value.op?.opId });
  const reconciliation = await repair(visit, gate, await provenGone(visit));
  visit.note({ familyRows: reconciliation.familyRows, revoked: reconciliation.revoked.length });
  const echo = { v, kind, space, owner: holder.owner, actor, instanceId, managerLifecycleUid, requestId };
  return { ...echo, operation, identities, targetInstanceId, reconciliation };
};

/** Check 2, of a gate of the holder's own. */
async function deadGate({ args, context, holder, work }: Visit): Promise<Entry<EpGate>> {
  const { targetInstanceId: instanceId } = args;
  const gate = await context.store.read(epGateRows.key({ endpoint: MANAGER, instanceId }), work);
  if (gate && gate.value.principal !== servePrincipal(holder.owner, instanceId)) {
    throw denied("this instance is another owner's");
  }
  if (gate?.value.state !== "frozen" || gate.value.op?.kind !== "registration") {
    throw new AuthorityError("failed-precondition", "no registration of this instance hangs");
  }
  return gate;
}

const registrantOf = ({ args, holder }: Visit) =>
  principalOf(holder.owner, ROLES.supervisor.actor({ instanceId: args.targetInstanceId }));

/** Checks 3 and 4: who froze the gate is gone, under a complete sweep. What is unknown refuses; nothing overrides it. */
async function provenGone(visit: Visit): Promise<Reconciliation["liveness"]> {
  const { context, work } = visit;
  const { state, note = "" } = await askPrincipalLiveness(context.peers, registrantOf(visit), work, context.ports);
  if (state === "live") {
    throw new AuthorityError("failed-precondition", "its manager is connected: it repeats its registration itself");
  }
  if (state !== "gone") throw unavailable(`registrant not proven gone: ${note}`);
  return { state, detail: note };
}

async function repair(
  visit: Visit,
  gate: Entry<EpGate>,
  liveness: Reconciliation["liveness"],
): Promise<Reconciliation> {
  const { args, context, work } = visit;
  const { targetInstanceId: instanceId } = args;
  const opId = gate.value.op?.opId as Uid;
  const { rows, revoked, principals, result } = await runBarrier(context, {
    ...gateFenced(work),
    kind: "repair",
    opId,
    fence: gate,
    rows: (of) => familyRows(context, { endpoint: MANAGER, instanceId, contains: "serve-family" }, of),
    async finish(_contained, end) {
      const after = opened(gate.value);
      await end([swap(gate, after)]);
      return after;
    },
  });
  const holders = [...principals];
  return {
    endpoint: MANAGER,
    instanceId,
    holderPrincipal: registrantOf(visit),
    opId,
    freezeToken: gate.revision,
    before: gate.value,
    after: result,
    liveness,
    familyRows: rows.length,
    revoked: revoked.slice(0, CUSTODIAN.maxTargets).map(({ value }) => value.credentialId),
    evicted: holders,
    holders,
    holdersVerifiedBeforeAttempt: [],
    holdersVerifiedThisAttempt: holders,
    holdersRemaining: [],
    repairCursorCleanup: "retained",
    reopenedAtGeneration: result.generation,
  };
}

/** As it stood before the registration, one generation further. */
const opened = ({ op: _aborted, ...before }: EpGate): EpGate => ({
  ...before,
  state: "open",
  generation: before.generation + 1,
});
