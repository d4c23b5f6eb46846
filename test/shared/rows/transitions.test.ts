/** Where a row may go, and how long it lives (state §3, §4, §8). */
import { describe, expect, it } from "vitest";
import { LIFE } from "../../../shared/limits.ts";
import { acceptedRows } from "../../../shared/rows/accepted.ts";
import { type Actor, actorRows } from "../../../shared/rows/actor.ts";
import { inboxRows } from "../../../shared/rows/connect.ts";
import { credRows } from "../../../shared/rows/credential.ts";
import { secondsUntil } from "../../../shared/rows/family.ts";
import { type EpGate, epGateRows, gateRows } from "../../../shared/rows/gate.ts";
import { type Head, headRows } from "../../../shared/rows/head.ts";
import { issuedRows } from "../../../shared/rows/issued.ts";
import { type Obligation, obligationRows } from "../../../shared/rows/mesh/obligation.ts";
import { type Session, sessionRows } from "../../../shared/rows/session.ts";
import { PHASES, type Stage, stageRows } from "../../../shared/rows/stage.ts";
import { CredentialId, Digest, SessionId } from "../../../shared/tokens.ts";
import { ACTOR, freshUid, frozenGate, MANAGER, OWNER, openGate, PRINCIPAL, rootCred } from "../../kit/rows.ts";

const uid = freshUid();
const opId = freshUid();

describe("an actor row", () => {
  const active: Actor = {
    ver: 1,
    owner: OWNER,
    actor: ACTOR,
    kind: "interactive",
    state: "active",
    lifecycleUid: uid,
    scope: [],
    allowSubscribe: [],
    allowPublish: [],
    grantedAt: 1,
    grantedBy: PRINCIPAL,
  };
  const revoked: Actor = { ...active, state: "revoked", revokedAt: 2, revokedBy: PRINCIPAL };

  it("is created active, revoked, and granted again only as another incarnation of its kind", () => {
    expect(actorRows.admits(undefined, active)).toBe(true);
    expect(actorRows.admits(undefined, revoked)).toBe(false);
    expect(actorRows.admits(active, revoked)).toBe(true);
    expect(actorRows.admits(revoked, active)).toBe(false);
    expect(actorRows.admits(revoked, { ...active, lifecycleUid: freshUid() })).toBe(true);
    expect(actorRows.admits(revoked, { ...active, lifecycleUid: freshUid(), kind: "managed" })).toBe(false);
  });

  it("never changes while it is active", () => {
    expect(actorRows.admits(active, { ...active, scope: [] })).toBe(false);
    expect(actorRows.admits(active, { ...revoked, lifecycleUid: freshUid() })).toBe(false);
  });
});

describe("a head", () => {
  const head = (state: Head["state"], lifecycleUid = uid): Head => ({
    owner: OWNER,
    actor: ACTOR,
    lifecycleUid,
    managerInstance: "local",
    processEpoch: 1,
    state,
    currentCredentialId: CredentialId.parse(`root-${uid}`),
    ...(state === "retiring" ? { op: { opId, kind: "retirement" as const } } : {}),
  });

  it("goes active, retiring, retired and then on to another incarnation", () => {
    expect(headRows.admits(undefined, head("active"))).toBe(true);
    expect(headRows.admits(head("active"), head("active"))).toBe(true);
    expect(headRows.admits(head("active"), head("retiring"))).toBe(true);
    expect(headRows.admits(head("retiring"), head("retired"))).toBe(true);
    expect(headRows.admits(head("retired"), head("active", freshUid()))).toBe(true);
  });

  it("skips nothing and never goes back", () => {
    expect(headRows.admits(head("active"), head("retired"))).toBe(false);
    expect(headRows.admits(head("active"), head("active", freshUid()))).toBe(false);
    expect(headRows.admits(head("retiring"), head("active"))).toBe(false);
    expect(headRows.admits(head("retired"), head("active"))).toBe(false);
    expect(headRows.admits(undefined, head("retiring"))).toBe(false);
  });
});

describe("a gate", () => {
  const retired = { ...frozenGate(uid, opId), state: "retired" as const };

  it("is frozen, and opened a generation further or retired for good", () => {
    expect(gateRows.admits(openGate(uid), frozenGate(uid))).toBe(true);
    expect(gateRows.admits(frozenGate(uid), { ...openGate(uid), generation: 2 })).toBe(true);
    expect(gateRows.admits(frozenGate(uid), retired)).toBe(true);
  });

  it("opens at no other generation, retires from no other state, and never changes once retired", () => {
    expect(gateRows.admits(frozenGate(uid), openGate(uid))).toBe(false);
    expect(gateRows.admits(openGate(uid), retired)).toBe(false);
    expect(gateRows.admits(openGate(uid), { ...openGate(uid), generation: 2 })).toBe(false);
    for (const to of [openGate(uid), frozenGate(uid), retired]) expect(gateRows.admits(retired, to)).toBe(false);
  });

  it("of an endpoint may be created retired, and its epoch never falls", () => {
    const gate: EpGate = {
      state: "frozen",
      generation: 0,
      op: { opId, kind: "registration" },
      processEpoch: 2,
      registrationRevision: 4,
      nameAuthorityRevision: 0,
      principal: PRINCIPAL,
    };
    const { op: _op, ...open } = { ...gate, state: "open" as const, generation: 1 };
    expect(epGateRows.admits(undefined, { ...gate, state: "retired" })).toBe(true);
    expect(epGateRows.admits(undefined, gate)).toBe(false);
    expect(epGateRows.admits(gate, { ...open, processEpoch: 3 })).toBe(true);
    expect(epGateRows.admits(gate, { ...open, processEpoch: 1 })).toBe(false);
    // The end of an instance replaces a registration's freeze.
    expect(epGateRows.admits(gate, { ...gate, op: { opId: freshUid(), kind: "retirement" } })).toBe(true);
  });
});

describe("a credential row", () => {
  it("is revoked and never comes back", () => {
    const active = rootCred(uid, { exp: 10_000 });
    expect(credRows.admits(undefined, active)).toBe(true);
    expect(credRows.admits(undefined, { ...active, state: "revoked" })).toBe(false);
    expect(credRows.admits(active, { ...active, state: "revoked" })).toBe(true);
    expect(credRows.admits({ ...active, state: "revoked" }, active)).toBe(false);
    expect(credRows.admits(active, active)).toBe(false);
  });

  it("lives as long as its credential, rounded up, and is still written when that is over", () => {
    const row = rootCred(uid, { exp: 10_001 });
    expect(credRows.lifetime(row, 1_000)).toBe(10);
    expect(credRows.lifetime({ ...row, state: "revoked" }, 9_500)).toBe(1);
    expect(secondsUntil(1_000, 50_000)).toBe(1);
  });
});

describe("a stage", () => {
  const stage = (phase: Stage["phase"]): Stage => ({
    v: 1,
    opId,
    kind: "retirement",
    gate: `gate.${uid}`,
    fromGeneration: 1,
    principal: PRINCIPAL,
    evicted: [],
    startedBy: "x",
    at: 1,
    phase,
  });

  it("moves forward only, carries a fence at the same phase, and rests at its end", () => {
    for (const [at, from] of PHASES.entries()) {
      for (const [next, to] of PHASES.entries()) {
        const forward = next >= at && from !== "finished" && from !== "aborted";
        expect(stageRows.admits(stage(from), stage(to)), `${from} to ${to}`).toBe(forward);
      }
    }
  });

  it("lives on for 30 days after its end, and for ever before", () => {
    expect(stageRows.lifetime(stage("drained"), 0)).toBeUndefined();
    expect(stageRows.lifetime(stage("finished"), 0)).toBe(LIFE.terminalRowS);
    expect(stageRows.lifetime(stage("aborted"), 0)).toBe(2_592_000);
  });
});

describe("a session", () => {
  const session = (state: Session["state"]): Session => ({
    sessionId: SessionId.parse("s".repeat(22)),
    endpoint: MANAGER,
    serving: { instanceId: uid, epoch: 0 },
    holder: { principal: PRINCIPAL, lifecycleUid: uid },
    holderCredentialId: CredentialId.parse(`h-${"s".repeat(22)}`),
    servingCredentialId: CredentialId.parse(`sha256-${"0".repeat(64)}`),
    grantSig: "x",
    state,
    exp: 1,
  });

  it("opens once, may be issued again while active, and ends once", () => {
    expect(sessionRows.admits(undefined, session("active"))).toBe(true);
    expect(sessionRows.admits(undefined, session("closed"))).toBe(false);
    expect(sessionRows.admits(session("active"), session("active"))).toBe(true);
    expect(sessionRows.admits(session("active"), session("retired"))).toBe(true);
    expect(sessionRows.admits(session("closed"), session("active"))).toBe(false);
    expect(sessionRows.admits(session("closed"), session("expired"))).toBe(false);
  });

  it("has a lifetime on its terminal write only", () => {
    expect(sessionRows.lifetime(session("active"), 0)).toBeUndefined();
    expect(sessionRows.lifetime(session("superseded"), 0)).toBe(2_592_000);
  });
});

describe("an inbox", () => {
  const inbox = (exp: number, lifecycleUid = uid) => ({ owner: OWNER, actor: ACTOR, lifecycleUid, exp });

  it("stays its holder's and never ends sooner than it did", () => {
    expect(inboxRows.admits(inbox(5), inbox(5))).toBe(true);
    expect(inboxRows.admits(inbox(5), inbox(6))).toBe(true);
    expect(inboxRows.admits(inbox(5), inbox(4))).toBe(false);
    expect(inboxRows.admits(inbox(5), inbox(6, freshUid()))).toBe(false);
  });

  it("outlives its bearer by a minute", () => {
    expect(inboxRows.lifetime(inbox(900_000), 0)).toBe(960);
  });
});

describe("issued evidence and what was accepted", () => {
  it("live a minute longer than the authority they describe", () => {
    const row = { version: 1, expiresAt: LIFE.issuedMs };
    expect(issuedRows.lifetime(row as never, 0)).toBe(86_460);
    expect(issuedRows.lifetime({ ...row, expiresAt: undefined } as never, 0)).toBeUndefined();
    expect(acceptedRows.lifetime({} as never, 0)).toBe(86_460);
  });
});

describe("an obligation", () => {
  const row = (state: Obligation["state"]): Obligation => ({
    state: state as "accepted",
    opId,
    policyRevision: 1,
    decision: "epf",
    fingerprint: Digest.parse(`sha256:${"0".repeat(64)}`),
    sourceSeq: 1,
    route: "effects",
  });

  it("moves forward only", () => {
    expect(obligationRows.admits(row("provisional"), row("accepted"))).toBe(true);
    expect(obligationRows.admits(row("provisional"), row("rejected"))).toBe(true);
    expect(obligationRows.admits(row("accepted"), row("terminal"))).toBe(true);
    expect(obligationRows.admits(row("accepted"), row("provisional"))).toBe(false);
    expect(obligationRows.admits(row("rejected"), row("terminal"))).toBe(false);
    expect(obligationRows.admits(row("terminal"), row("terminal"))).toBe(false);
  });
});
