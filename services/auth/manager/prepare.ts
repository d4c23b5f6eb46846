/**
 * Makes a manager instance known and gives it its supervisor and executor credentials (operations §6, state §5 step 6).
 * The only operation that adds a granter: its executor row is fenced on the granter's row, since the granter's removal
 * would not touch this gate yet.
 */
import type { managerPrepare } from "../../../shared/contracts/auth/manager/prepare.ts";
import type { Output } from "../../../shared/contracts/operation.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { MANAGER as MANAGERS } from "../../../shared/limits.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type EpGate, epGateRows } from "../../../shared/rows/gate.ts";
import { byManagerRows, type Manager, managerRows } from "../../../shared/rows/manager.ts";
import { create, fenced, type Message, swap, touch } from "../../../shared/store/message.ts";
import { lostOn } from "../../../shared/store/write.ts";
import type { Owner } from "../../../shared/tokens.ts";
import { MANAGER } from "../context.ts";
import { assertScope, currentGranter } from "../granters.ts";
import { type Granter, grantedByOf, sameGranter } from "../holders.ts";
import { assignmentEnd, onlyTouched } from "../issue/issue.ts";
import { type Minted, mint } from "../issue/mint.ts";
import { servePrincipal } from "../registration/check.ts";
import { type AuthHandler, type ManagingVisit, managing, revisit } from "../visit.ts";
import { standing } from "./credentials.ts";
import { material } from "./material.ts";

type Visit = ManagingVisit<Parameters<AuthHandler<typeof managerPrepare>>[0]["args"]>;

const denied = (message: string): AuthorityError => new AuthorityError("permission-denied", message);

export const handleManagerPrepare: AuthHandler<typeof managerPrepare> = (visit) => prepare(managing(visit), true);

/** Decides again, from the caller on, where a commit was lost to nothing but a granting row or a touch, once (§4, M). */
async function prepare(visit: Visit, mayRepeat: boolean): Promise<Output<typeof managerPrepare>> {
  const { context, args, holder, work } = visit;
  const { instanceId } = args;
  const gateKey = epGateRows.key({ endpoint: MANAGER, instanceId });
  const gate = await context.store.read(gateKey, work);
  if (gate && gate.value.principal !== servePrincipal(holder.owner, instanceId)) {
    throw denied("this instance is another owner's");
  }
  if (gate && gate.value.state !== "open") {
    throw new AuthorityError("failed-precondition", "this instance is registering or has ended, repair it first");
  }
  const manager = await context.store.read(managerRows.key({ instanceId }), work);
  if (
    manager &&
    (manager.value.owner !== holder.owner || manager.value.managerLifecycleUid !== args.managerLifecycleUid)
  ) {
    throw denied("this instance is known under another uid");
  }
  if (!gate) await assertRoom(visit, holder.owner);
  const granter = await currentGranter(context.store, grantedByOf(holder.granter), work);
  assertScope(granter, "supervise");

  const opened = gate?.value ?? newGate(visit);
  const issuedAt = context.ports.now();
  const more = { grantedBy: grantedByOf(granter), boundMs: assignmentEnd(holder) };
  const instance = { endpoint: MANAGER, instanceId, gate: opened };
  const supervisor = mint(context, instance, standing(visit, "supervisor", opened), more);
  const executor = mint(context, instance, standing(visit, "executor", opened), more);
  try {
    const rows = messages(visit, { gate, opened, manager, granter, supervisor, executor });
    const [revision] = await context.store.commit(rows, work);
    visit.note({ revision });
  } catch (error) {
    if (!mayRepeat || !lostOn(error) || !(await onlyTouched(visit, { key: gateKey, value: gate?.value }))) throw error;
    return prepare(await revisit(visit), false);
  }
  const expiresAt = Math.min(supervisor.signed.exp, executor.signed.exp) * 1_000;
  const { processEpoch } = opened;
  visit.note({ roles: ["supervisor", "executor"], exp: expiresAt / 1_000, processEpoch, first: gate === undefined });
  return {
    ...material(visit, { issuedAt, expiresAt }),
    credentials: { supervisor: supervisor.signed, executor: executor.signed },
  };
}

const newGate = ({ args, holder }: Visit): EpGate => ({
  state: "open",
  generation: 0,
  processEpoch: 0,
  registrationRevision: 0,
  nameAuthorityRevision: 0,
  principal: servePrincipal(holder.owner, args.instanceId),
});

interface Decision {
  readonly gate: Entry<EpGate> | undefined;
  readonly opened: EpGate;
  readonly manager: Entry<Manager> | undefined;
  readonly granter: Granter;
  readonly supervisor: Minted;
  readonly executor: Minted;
}

/** Fences stand before what writes their row, the touch of a gate that existed last. */
function messages({ args, holder }: Visit, decision: Decision): Message[] {
  const { gate, opened, manager, granter, supervisor, executor } = decision;
  const { instanceId, managerLifecycleUid } = args;
  const key = managerRows.key({ instanceId });
  const grantedBy = grantedByOf(granter);
  const value: Manager = { v: 1, instanceId, owner: holder.owner, managerLifecycleUid, grantedBy };
  const changed = manager !== undefined && !sameGranter(manager.value.grantedBy, grantedBy);
  return [
    ...(gate
      ? [fenced(supervisor.row.key, supervisor.row.value, gate)]
      : [
          create(epGateRows.key({ endpoint: MANAGER, instanceId }), opened),
          create(byManagerRows.key({ owner: holder.owner, instanceId }), {}),
          create(supervisor.row.key, supervisor.row.value),
        ]),
    fencedOn(granter, executor),
    ...(manager ? (changed ? [swap(manager, value)] : []) : [create(key, value)]),
    ...(changed && gate ? [touch(gate)] : []),
  ];
}

const fencedOn = (granter: Granter, { row }: Minted): Message =>
  granter.kind === "actor" ? fenced(row.key, row.value, granter.row) : fenced(row.key, row.value, granter.row);

/** Check 4, counted and not fenced: a few more than the limit do no harm. */
async function assertRoom({ context, work }: Visit, owner: Owner): Promise<void> {
  const { entries } = await context.store.scan(byManagerRows, { owner }, work);
  let alive = 0;
  for (const { key } of entries) {
    const parts = byManagerRows.parts(key.key);
    if (!parts) continue;
    const gate = await context.store.read(epGateRows.key({ endpoint: MANAGER, instanceId: parts.instanceId }), work);
    if (gate?.value.state !== "retired") alive += 1;
    if (alive >= MANAGERS.gatesPerOwner) {
      throw new AuthorityError("resource-exhausted", "this owner has as many manager instances as one may");
    }
  }
}
