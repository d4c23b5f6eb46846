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
import { create, swap } from "../../../shared/store/message.ts";
import type { EndpointLabel, Principal, Uid } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import { freeze } from "../barrier/freeze.ts";
import { gateFenced } from "../barrier/kinds.ts";
import { runBarrier } from "../barrier/run.ts";
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
  const frozen = await freeze(context, gate, { opId, kind: "registration" }, registering.principal, [], work);
  await context.afterStep?.({ kind: "registration", opId, step: "freeze" });
  return frozen;
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

/** Steps 4 to 7. The only place where an epoch moves, and only after a verified eviction. */
async function complete(
  context: AuthContext,
  registering: Registering,
  gate: Entry<EpGate>,
  work: Work,
): Promise<Entry<EpGate>> {
  const { result } = await runBarrier(context, {
    ...gateFenced(work),
    kind: "registration",
    opId: gate.value.op?.opId as Uid,
    fence: gate,
    rows: (of) => familyRows(context, registering, of),
    async finish(_contained, end) {
      const spec = await registering.spec(work);
      const value = opened(gate.value, spec.revision);
      const [revision = 0] = await end([swap(gate, value)]);
      return { key: gate.key, value, revision };
    },
  });
  return result;
}

function opened({ op: _ended, ...before }: EpGate, registrationRevision: number): EpGate {
  return {
    ...before,
    state: "open",
    generation: before.generation + 1,
    registrationRevision,
    processEpoch: before.registrationRevision === 0 ? 0 : before.processEpoch + 1,
  };
}

/** Every row of an instance, or those of its serve family. A corrupt one refuses: it could be active. */
export async function familyRows(
  { store }: AuthContext,
  { endpoint, instanceId, contains }: Pick<Registering, "endpoint" | "instanceId" | "contains">,
  work: Work,
): Promise<Entry<EpCred>[]> {
  const { entries, corrupt } = await store.scan(epCredRows, { endpoint, instanceId }, work);
  if (corrupt.length > 0) throw epCredRows.refusal(corrupt[0] ?? "", "garbled");
  return contains === "all" ? entries : entries.filter(({ value }) => ROLES[value.role].serveFamily);
}
