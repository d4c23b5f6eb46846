/**
 * The registration ceremony, steps 2 to 7 (wire §8): freeze the gate, contain the predecessor, open it under the next
 * epoch. Every step may be repeated; a crash leaves a frozen gate that the same operation id resumes.
 */
import { ROLES } from "../../../shared/credentials/roles.ts";
import { AuthorityError, isAuthorityError } from "../../../shared/errors.ts";
import { newUid } from "../../../shared/ports.ts";
import { type EpCred, epCredRows } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type EpGate, epGateRows } from "../../../shared/rows/gate.ts";
import type { ServiceSpec } from "../../../shared/rows/service.ts";
import { stageRows } from "../../../shared/rows/stage.ts";
import { create, swap } from "../../../shared/store/message.ts";
import type { EndpointLabel, Principal, Uid } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import { advance, evictVerified, holdersOf, revokeRows } from "../barrier/contain.ts";
import { freeze } from "../barrier/freeze.ts";
import type { AuthContext } from "../context.ts";

export interface Registering {
  readonly endpoint: EndpointLabel;
  readonly instanceId: Uid;
  /** Who serves it. */
  readonly principal: Principal;
  /** Which rows fall: those of the serve family, and for `auth`, which has no others, all. */
  readonly contains: "serve-family" | "all";
  /** Whether a first start may create the gate; a manager's is created by `manager-prepare`. */
  readonly createsGate: boolean;
  /** Step 6: the spec as it is to be registered; `auth` writes its own, a manager's executor did before. */
  spec(work: Work): Promise<Entry<ServiceSpec>>;
}

export const gateKey = ({ endpoint, instanceId }: Pick<Registering, "endpoint" | "instanceId">) =>
  epGateRows.key({ endpoint, instanceId });

/** The opened gate. `failed-precondition` where it can never open this way, `unavailable` while the proof is missing. */
export async function register(context: AuthContext, registering: Registering, work: Work): Promise<Entry<EpGate>> {
  for (;;) {
    try {
      const gate = await frozenGate(context, registering, work);
      return await complete(context, registering, gate, work);
    } catch (error) {
      if (!isAuthorityError(error, "conflict")) throw error;
    }
  }
}

/** Steps 2 and 3: the gate frozen by a registration, this one's or one that died. */
async function frozenGate(context: AuthContext, registering: Registering, work: Work): Promise<Entry<EpGate>> {
  const gate = (await context.store.read(gateKey(registering), work)) ?? (await firstGate(context, registering, work));
  const { state, op, principal } = gate.value;
  if (principal !== registering.principal) throw new AuthorityError("permission-denied", "this gate serves another");
  if (state === "frozen" && op?.kind === "registration") return gate;
  if (state !== "open") {
    context.log.warn({ gate: gate.key.key, state, opKind: op?.kind }, "registration refused");
    throw new AuthorityError("failed-precondition", "this instance has ended or is ending, it cannot register again");
  }
  const opId = newUid(context.ports);
  return freeze(context, gate, { opId, kind: "registration" }, registering.principal, [], work);
}

async function firstGate(context: AuthContext, registering: Registering, work: Work): Promise<Entry<EpGate>> {
  if (!registering.createsGate) throw new AuthorityError("failed-precondition", "prepare this instance first");
  const value: EpGate = {
    state: "open",
    generation: 0,
    processEpoch: 0,
    registrationRevision: 0,
    nameAuthorityRevision: 0,
    principal: registering.principal,
  };
  const key = gateKey(registering);
  const [revision = 0] = await context.store.commit([create(key, value)], work);
  return { key, value, revision };
}

/** Steps 4 to 7. */
async function complete(
  context: AuthContext,
  registering: Registering,
  gate: Entry<EpGate>,
  work: Work,
): Promise<Entry<EpGate>> {
  const opId = gate.value.op?.opId as Uid;
  const containment = { opId, fence: gate, rows: (of: Work) => familyRows(context, registering, of) };
  const rows = await revokeRows(context, containment, work);
  const holders = holdersOf(rows);
  await evictVerified(context, holders, work);
  await advance(context, containment, (stage) => ({ ...stage, evicted: holders, phase: "contained" }), [], work);
  const spec = await registering.spec(work);
  return open(context, gate, opId, spec.revision, work);
}

async function familyRows(context: AuthContext, registering: Registering, work: Work): Promise<Entry<EpCred>[]> {
  const { endpoint, instanceId, contains } = registering;
  const { entries, corrupt } = await context.store.scan(epCredRows, { endpoint, instanceId }, work);
  if (corrupt.length > 0) throw epCredRows.refusal(corrupt[0] ?? "", "garbled");
  return contains === "all" ? entries : entries.filter(({ value }) => ROLES[value.role].serveFamily);
}

/** Step 7: the only place where an epoch moves, and only after a verified eviction. */
async function open(
  context: AuthContext,
  gate: Entry<EpGate>,
  opId: Uid,
  registrationRevision: number,
  work: Work,
): Promise<Entry<EpGate>> {
  const { op: _ended, ...before } = gate.value;
  const value: EpGate = {
    ...before,
    state: "open",
    generation: before.generation + 1,
    registrationRevision,
    processEpoch: before.registrationRevision === 0 ? 0 : before.processEpoch + 1,
  };
  const stage = await context.store.read(stageRows.key({ opId }), work);
  if (!stage) throw new AuthorityError("conflict", "the registration was taken over");
  const messages = [swap(gate, value), swap(stage, { ...stage.value, phase: "finished" as const })];
  const [revision = 0] = await context.store.commit(messages, work);
  return { key: gate.key, value, revision };
}
