/**
 * Opens a session between this manager and one holder, or issues its serving half again (operations §6, state §5).
 * Both halves stand in one commit, each fenced on its own side's gate, so that a barrier of either side finds them.
 */
import type { managerSession } from "../../../shared/contracts/auth/manager/session.ts";
import type { Input } from "../../../shared/contracts/operation.ts";
import { ROLES, sourceChain } from "../../../shared/credentials/roles.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { LIFE } from "../../../shared/limits.ts";
import { type Cred, credRows, epCredRows } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type EpGate, type Gate, gateRows } from "../../../shared/rows/gate.ts";
import { headRows } from "../../../shared/rows/head.ts";
import { type Session, sessionRows } from "../../../shared/rows/session.ts";
import { create, fenced, type Message, swap } from "../../../shared/store/message.ts";
import { principalOf } from "../../../shared/tokens.ts";
import { holderCredential } from "../barrier/contain.ts";
import { revocation } from "../barrier/session.ts";
import { MANAGER } from "../context.ts";
import { issue } from "../issue/issue.ts";
import { type Credential, credential, type Minted } from "../issue/mint.ts";
import { assertEpoch, checkDeclaration } from "../registration/check.ts";
import { type AuthHandler, type ManagingVisit, managing } from "../visit.ts";
import { material, named } from "./material.ts";

type Visit = ManagingVisit<Input<typeof managerSession>>;
type Opening = Extract<Visit["args"]["session"], { holder: unknown }>;

export const handleManagerSession: AuthHandler<typeof managerSession> = async (given) => {
  const visit = managing(given);
  const { instanceId, session, registrationProof } = visit.args;
  const opens = "holder" in session;
  visit.note({ first: opens });
  const issued = await issue(visit, {
    async plan(current) {
      const gate = await checkDeclaration(current);
      assertEpoch(instanceId, gate, session.epoch);
      assertLife(current);
      const extra = opens ? await opening(current, session) : await reissue(current, gate);
      return { gate, credentials: [serving(current)], boundMs: session.exp * 1_000, extra };
    },
  });
  return {
    ...material(visit, issued),
    registrationProof,
    credentials: { sessionServing: named(issued, "sessionServing") },
  };
};

/** Check 3. */
function assertLife({ args, context }: Visit): void {
  const leftMs = args.session.exp * 1_000 - context.ports.now();
  if (leftMs <= 0) throw new AuthorityError("expired", "the session's exp has passed");
  if (leftMs > LIFE.sessionMaxS * 1_000) {
    throw new AuthorityError("bad-request", "a session ends within 24 h");
  }
}

function serving({ args, holder }: Visit): Credential {
  const { instanceId, managerLifecycleUid: uid, session } = args;
  const { id, sessionId, epoch } = session;
  return credential({
    name: "sessionServing",
    role: "sessionServing",
    profile: "session-serving",
    key: id,
    holder: { owner: holder.owner, actor: ROLES.sessionServing.actor({ instanceId }), uid },
    bindings: { sessionId, epoch },
    sessionId,
  });
}

/** Check 4, and the rows of a new session: one that exists is lost at its create, since a grant is of one use. */
async function opening(visit: Visit, session: Opening): Promise<(minted: readonly Minted[]) => Message[]> {
  const gate = await holdersGate(visit, session);
  const { sessionId, epoch, grantSig, holder } = session;
  const exp = session.exp * 1_000;
  const principal = principalOf(holder.owner, holder.actor);
  const credentialId = holderCredential(sessionId);
  const half: Cred = {
    credentialId,
    role: "sessionHolder",
    holderPrincipal: principal,
    lifecycleUid: holder.lifecycleUid,
    sourceChain: sourceChain("sessionHolder", sessionId),
    generation: gate.value.generation,
    state: "active",
    exp,
  };
  const row = (servingCredentialId: Session["servingCredentialId"]): Session => ({
    sessionId,
    endpoint: MANAGER,
    serving: { instanceId: visit.args.instanceId, epoch },
    holder: { principal, lifecycleUid: holder.lifecycleUid },
    holderCredentialId: credentialId,
    servingCredentialId,
    grantSig,
    state: "active",
    exp,
  });
  return (minted) => [
    create(sessionRows.key({ sessionId }), row(servingId(minted))),
    fenced(credRows.key({ uid: holder.lifecycleUid, credentialId }), half, gate),
  ];
}

async function holdersGate({ context, work }: Visit, { holder }: Opening): Promise<Entry<Gate>> {
  const { owner, actor, lifecycleUid: uid } = holder;
  const [head, gate] = await Promise.all([
    context.store.read(headRows.key({ owner, actor }), work),
    context.store.read(gateRows.key({ uid }), work),
  ]);
  const current = head?.value.state === "active" && head.value.lifecycleUid === uid;
  if (!current || gate?.value.state !== "open") {
    throw new AuthorityError("expired", "the holder does not live under this uid any more");
  }
  return gate;
}

/** Checks 5 and 6, and the rows of another serving half in place of the former one. */
async function reissue(visit: Visit, gate: Entry<EpGate>): Promise<(minted: readonly Minted[]) => Message[]> {
  const { context, args, work } = visit;
  const { instanceId, session } = args;
  const found = await context.store.read(sessionRows.key({ sessionId: session.sessionId }), work);
  if (!found) throw new AuthorityError("not-found", "there is no such session");
  const { value } = found;
  visit.note({ target: value.holder.principal, lifecycleUid: value.holder.lifecycleUid });
  const same =
    value.state === "active" &&
    value.exp > context.ports.now() &&
    value.serving.instanceId === instanceId &&
    value.serving.epoch === gate.value.processEpoch &&
    value.exp === session.exp * 1_000;
  if (!same) {
    throw new AuthorityError("failed-precondition", "the session has ended, or is not what this instance serves");
  }
  const credentialId = value.servingCredentialId;
  const former = await context.store.read(epCredRows.key({ endpoint: MANAGER, instanceId, credentialId }), work);
  return (minted) => [
    swap(found, { ...value, servingCredentialId: servingId(minted) }),
    ...(former?.value.state === "active" ? [revocation(former)] : []),
  ];
}

function servingId([serving]: readonly Minted[]): Session["servingCredentialId"] {
  if (!serving) throw new TypeError("a session's serving half was not minted");
  return serving.row.value.credentialId;
}
