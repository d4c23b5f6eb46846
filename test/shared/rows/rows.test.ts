/** Every family accepts its own row, rebuilds its key from it and refuses the rest (state §3, records). */
import { describe, expect, it } from "vitest";
import { canonicalBytes, canonicalText, sha256Hex } from "../../../shared/canonical.ts";
import { acceptedRows } from "../../../shared/rows/accepted.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { admissionRows, revocationRows } from "../../../shared/rows/admission.ts";
import { assignmentRows, currentRows } from "../../../shared/rows/assignment.ts";
import { AUTHORITY_ROWS, authorityKey } from "../../../shared/rows/authority.ts";
import { inboxRows, trustRows } from "../../../shared/rows/connect.ts";
import { credRows, epCredRows } from "../../../shared/rows/credential.ts";
import type { Family } from "../../../shared/rows/family.ts";
import { frontierRows } from "../../../shared/rows/frontier.ts";
import { epGateRows, gateRows } from "../../../shared/rows/gate.ts";
import { headRows } from "../../../shared/rows/head.ts";
import { issuedRows } from "../../../shared/rows/issued.ts";
import { byManagerRows, managerRows } from "../../../shared/rows/manager.ts";
import { checkpointRows } from "../../../shared/rows/mesh/checkpoint.ts";
import { decisionFacts, effectFacts, goalFacts, poolFacts } from "../../../shared/rows/mesh/facts.ts";
import { goalIndexRows } from "../../../shared/rows/mesh/goal.ts";
import { journalRows } from "../../../shared/rows/mesh/journal.ts";
import { obligationRows } from "../../../shared/rows/mesh/obligation.ts";
import { runStatusRows } from "../../../shared/rows/mesh/run.ts";
import { planeRows } from "../../../shared/rows/plane.ts";
import { serviceSpecRows, serviceStatusRows } from "../../../shared/rows/service.ts";
import { sessionRows } from "../../../shared/rows/session.ts";
import { stageRows } from "../../../shared/rows/stage.ts";
import { uidRows } from "../../../shared/rows/uid.ts";

const [u, u2, iid, op] = ["1", "2", "3", "4"].map((digit) => digit.repeat(26));
const o = `u_${"a".repeat(26)}`;
const g = "ab".repeat(16);
const hex = "0f".repeat(32);
const digest = `sha256:${hex}`;
const cid = `sha256-${hex}`;
const run = `run-${"0".repeat(32)}`;
const nkey = (kind: string) => kind + "A".repeat(55);
const nonce = "n".repeat(22);
const caller = { id: `${o}.coder`, lifecycleUid: u };
const triple = `${o}.coder.${u}`;
const ref = { space: "demo", owner: o, actor: "coder", uid: u, generation: g };
const ceiling = {
  publish: { allow: { mode: "patterns", patterns: ["a.>"] }, deny: [] },
  subscribe: { allow: { mode: "none" }, deny: ["b"] },
};
const tuple = { serverId: nkey("N"), cid: 7, userNkey: nkey("U") };
const cred = {
  credentialId: cid,
  credentialKey: nkey("U"),
  role: "executor",
  holderPrincipal: `${o}.manager_exec_${iid}`,
  lifecycleUid: u,
  sourceChain: ["root"],
  grantedBy: { kind: "actor", owner: o, actor: "coder", lifecycleUid: u },
  generation: 1,
  state: "active",
  exp: 1_800_000_000_000,
};
const fact = { v: 1, id: "e1", fingerprint: digest, caller, sourceSeq: 9, ts: 1 };

interface Example {
  readonly family: Family<unknown>;
  readonly key: string;
  readonly row: Record<string, unknown>;
  /** Other rows of the same key that are good. */
  readonly also?: readonly Record<string, unknown>[];
  /** Changes that make it none. */
  readonly not?: readonly Record<string, unknown>[];
  /** May others add members? */
  readonly open?: true;
}

const gone = undefined;

const examples: Record<string, Example> = {
  actor: {
    family: actorRows,
    key: `actor.${o}.coder`,
    row: {
      ver: 1,
      owner: o,
      actor: "coder",
      kind: "managed",
      state: "active",
      lifecycleUid: u,
      scope: ["spawn", "role:dev"],
      allowSubscribe: ["team.*", ">"],
      allowPublish: [],
      role: "dev",
      parent: `${o}.cli`,
      label: "a coder",
      tokenHash: hex,
      grantedAt: 1,
      grantedBy: "local.operator",
    },
    also: [
      { kind: "interactive", tokenHash: gone, parent: gone },
      { state: "revoked", revokedAt: 2, revokedBy: "local.operator" },
    ],
    not: [
      { tokenHash: gone },
      { kind: "interactive" },
      { kind: "interactive", tokenHash: gone },
      { owner: "local" },
      { actor: "other" },
      { revokedAt: 2 },
      { scope: ["root"] },
      { allowPublish: ["a b"] },
    ],
  },
  head: {
    family: headRows,
    key: `lifecycle.${o}.coder`,
    row: {
      owner: o,
      actor: "coder",
      lifecycleUid: u,
      managerInstance: iid,
      processEpoch: 1,
      state: "active",
      currentCredentialId: `root-${u}`,
    },
    also: [{ state: "retiring", op: { opId: op, kind: "retirement" } }, { state: "retired" }],
    not: [{ state: "retiring" }, { op: { opId: op, kind: "retirement" } }, { actor: "x" }],
  },
  uid: { family: uidRows, key: `uid.${u}`, row: { owner: o, actor: "coder", mintedBy: `${o}.cli` } },
  gate: {
    family: gateRows,
    key: `gate.${u}`,
    row: { lifecycleUid: u, state: "open", generation: 1 },
    also: [
      { state: "frozen", op: { opId: op, kind: "takeover" } },
      { state: "retired", op: { opId: op, kind: "retirement" } },
    ],
    not: [{ state: "frozen" }, { op: { opId: op, kind: "retirement" } }, { lifecycleUid: u2 }, { generation: 1.5 }],
  },
  epgate: {
    family: epGateRows,
    key: `epgate.manager.${iid}`,
    row: {
      state: "open",
      generation: 0,
      processEpoch: 0,
      registrationRevision: 0,
      nameAuthorityRevision: 0,
      principal: `${o}.manager_serve_${iid}`,
    },
    not: [{ lifecycleUid: u }, { processEpoch: gone }],
  },
  cred: {
    family: credRows,
    key: `cred.${u}.${cid}`,
    row: cred,
    also: [{ state: "revoked" }, { role: "runDriver", runId: run }],
    not: [
      { lifecycleUid: u2 },
      { credentialId: `sha256-${"1".repeat(64)}` },
      { runId: run },
      { role: "runMediator" },
      { role: "root" },
      { credentialKey: gone },
      { role: "king" },
    ],
  },
  epcred: {
    family: epCredRows,
    key: `epcred.manager.${iid}.${cid}`,
    row: { ...cred, endpoint: "manager", processEpoch: 0, registrationRevision: 3, nameAuthorityRevision: 0 },
    not: [{ endpoint: "auth" }, { processEpoch: gone }],
  },
  session: {
    family: sessionRows,
    key: `session.${nonce}`,
    row: {
      sessionId: nonce,
      endpoint: "manager",
      serving: { instanceId: iid, epoch: 0 },
      holder: { principal: `${o}.coder`, lifecycleUid: u },
      holderCredentialId: `h-${nonce}`,
      servingCredentialId: cid,
      grantSig: "sig",
      state: "active",
      exp: 1,
    },
    also: [{ state: "closed" }],
    not: [{ sessionId: "m".repeat(22) }, { state: "open" }],
  },
  stage: {
    family: stageRows,
    key: `stage.${op}`,
    row: {
      v: 1,
      opId: op,
      kind: "retirement",
      gate: `gate.${u}`,
      fromGeneration: 1,
      principal: `${o}.coder`,
      evicted: [`${o}.coder`],
      startedBy: iid,
      at: 1,
      phase: "frozen",
    },
    not: [{ opId: u }, { phase: "done" }],
  },
  plane: {
    family: planeRows,
    key: "plane",
    row: { v: 1, generation: 1, claimId: "x.0.y", state: "held", ledger: tuple, records: tuple, openedAt: "2026" },
    not: [{ ledger: { ...tuple, cid: "7" } }, { v: 2 }],
  },
  frontier: {
    family: frontierRows,
    key: `frontier.${u}`,
    row: { lifecycleUid: u, opId: op, streams: { EPF_demo: 3, KV_cotal_records_demo: 0 } },
    not: [{ lifecycleUid: u2 }, { streams: { EPF_demo: -1 } }, { streams: { "a.b": 1 } }],
  },
  manager: {
    family: managerRows,
    key: `manager.${iid}`,
    row: {
      v: 1,
      instanceId: iid,
      owner: o,
      managerLifecycleUid: u,
      grantedBy: { kind: "assignment", instanceId: iid, assignmentRevision: 1 },
    },
    not: [{ instanceId: u }, { grantedBy: { kind: "actor", owner: o } }],
  },
  bymanager: { family: byManagerRows, key: `bymanager.${o}.${iid}`, row: {} },
  assignment: {
    family: assignmentRows,
    key: `assignment.${iid}`,
    row: {
      v: 1,
      owner: o,
      space: "demo",
      accountPublicKey: nkey("A"),
      instanceId: iid,
      lifecycleUid: u,
      assignmentRevision: 1,
      kind: "platform-supervisor",
      scope: ["supervise"],
      expiresAt: 1,
      state: "assigned",
    },
    also: [
      { kind: "platform-control", owner: `p_${"a".repeat(26)}`, scope: gone, expiresAt: gone, state: "revoked" },
      { state: "ended" },
    ],
    not: [
      { kind: "platform-control" },
      { state: "revoked" },
      { scope: ["admin"] },
      { assignmentRevision: 0 },
      { owner: `p_${"a".repeat(26)}` },
    ],
  },
  current: {
    family: currentRows,
    key: "assignment.platform",
    row: { v: 1, instanceId: iid, assignmentRevision: 2 },
  },
  trust: {
    family: trustRows,
    key: "trust",
    row: {
      v: 1,
      rev: 1,
      issuer: "https://issuer.example",
      activeKid: "k",
      keys: [{ kty: "OKP", crv: "Ed25519", x: "x".repeat(43), kid: "k" }],
      ownerCommitment: digest,
    },
    not: [{ activeKid: "other" }, { keys: [] }, { rev: "1" }],
  },
  "a trust with a private key": {
    family: trustRows,
    key: "trust",
    row: {
      v: 1,
      rev: 1,
      issuer: "i",
      activeKid: "k",
      keys: [{ kty: "OKP", crv: "Ed25519", x: "x".repeat(43), kid: "k", use: "sig", alg: "EdDSA" }],
      ownerCommitment: digest,
    },
    not: [{ keys: [{ kty: "OKP", crv: "Ed25519", x: "x".repeat(43), kid: "k", d: "secret" }] }],
  },
  inbox: {
    family: inboxRows,
    key: `inbox.${nonce}`,
    row: { owner: o, actor: "coder", lifecycleUid: u, exp: 1 },
  },
  admission: {
    family: admissionRows,
    key: `admission.v1.manager.${run}`,
    row: {
      version: 1,
      space: "demo",
      endpoint: "manager",
      runId: run,
      instanceId: iid,
      caller: { owner: o, actor: "coder", uid: u, generation: g },
      ceiling,
      provenance: { kind: "issued", ref, resolvedRevision: 1 },
      admittedAt: 1,
    },
    also: [{ provenance: { kind: "operator", by: "local.operator", reason: "why" } }],
    not: [{ runId: `run-${"1".repeat(32)}` }, { endpoint: "auth" }, { ceiling: { publish: ceiling.publish } }],
  },
  revocation: {
    family: revocationRows,
    key: `revoked.v1.manager.${run}`,
    row: { version: 1, runId: run, reason: "r", by: `${o}.cli`, revokedAt: 1 },
    not: [{ runId: `run-${"1".repeat(32)}` }],
  },
  issued: {
    family: issuedRows,
    key: `v1.${triple}.${g}`,
    row: {
      version: 1,
      ref,
      sources: [{ space: "demo", bucket: "cotal_auth_demo", key: `cred.${u}` }],
      permissions: ceiling,
      expiresAt: 1,
    },
    also: [{ expiresAt: gone }],
    not: [
      { ref: { ...ref, uid: u2 } },
      { permissions: { ...ceiling, publish: { allow: { mode: "patterns" }, deny: [] } } },
      { permissions: { ...ceiling, publish: { allow: { mode: "all", patterns: [] }, deny: [] } } },
    ],
  },
  accepted: { family: acceptedRows, key: `accepted.v1.${g}`, row: { version: 1, ref } },
  "a manager's service": {
    family: serviceSpecRows,
    key: `svc.manager.${iid}.spec`,
    row: { endpoint: "manager", owner: o, clusterDigests: [digest], protocol: { v: 1 } },
    not: [{ endpoint: "auth" }, { clusterDigests: ["x"] }, { protocol: { v: 3 } }],
    open: true,
  },
  "our own service": {
    family: serviceSpecRows,
    key: `svc.auth.${iid}.spec`,
    row: { endpoint: "auth", owner: "local", clusterDigests: [digest], protocol: { v: 2 } },
    not: [{ owner: o }, { protocol: { v: 1 } }, { endpointType: "x" }],
  },
  "a manager's status": {
    family: serviceStatusRows,
    key: `svc.manager.${iid}.status`,
    row: { epoch: 0, state: "whatever", observedSpecRevision: 3 },
    not: [{ epoch: "0" }],
    open: true,
  },
  "our own status": {
    family: serviceStatusRows,
    key: `svc.auth.${iid}.status`,
    row: { epoch: 0, state: "registered", observedSpecRevision: 3, version: "1", at: 1 },
    not: [{ state: "whatever" }, { at: gone }],
  },
  run: {
    family: runStatusRows,
    key: `run.manager.${run}.status`,
    row: {
      v: 1,
      observedSpecRevision: 1,
      state: "running",
      holder: `${nkey("U")}.t1`,
      epoch: 1,
      fencingToken: 1,
      journalHigh: 4,
      at: 1,
    },
    not: [{ state: "paused" }, { holder: "a b" }, { epoch: -1 }],
    open: true,
  },
  activation: {
    family: journalRows,
    key: run,
    row: { v: 1, kind: "activation", run, n: 1, holder: "h.t", fencingToken: 1, epoch: 1, replayedTo: 0, at: 1 },
    not: [{ run: `run-${"1".repeat(32)}` }, { epoch: gone }],
  },
  step: {
    family: journalRows,
    key: run,
    row: {
      v: 1,
      kind: "step",
      run,
      n: 2,
      at: 1,
      entry: { scope: "main", kind: "ask", occurrence: 0, requestId: "r", state: "pending", more: true },
    },
    also: [
      {
        entry: {
          scope: "main",
          kind: "ask",
          name: "x",
          occurrence: 0,
          requestId: "r",
          state: "pending",
          hold: 1,
          external: { askToken: "t" },
        },
      },
    ],
    not: [{ entry: { scope: "main" } }],
  },
  checkpoint: {
    family: checkpointRows,
    key: "cp.manager.t1.status",
    row: { v: 1, state: "waiting" },
    also: [{ state: "resumed", settledAnswerId: "a" }],
    not: [{ settledAnswerId: "a" }, { state: "expired", settledAnswerId: "a" }],
    open: true,
  },
  goal: {
    family: goalIndexRows,
    key: `goalidx.manager.${triple}.g1`,
    row: { v: 1, endpoint: "manager", owner: o, actor: "coder", uid: u, goalId: "g1", iid },
    also: [{ allocated: true, note: "n" }],
    not: [{ goalId: "g2" }, { owner: "local" }],
  },
  "an obligation of facts": {
    family: obligationRows,
    key: `oblig.${u}.manager.${triple}.e1`,
    row: {
      state: "accepted",
      opId: "x",
      mappingRevision: 1,
      decision: "epf",
      fingerprint: digest,
      sourceSeq: 1,
      route: "pool.fast",
    },
    also: [
      { route: "effects", policyRevision: 2, mappingRevision: gone },
      { state: "terminal", outcome: "abandoned" },
    ],
    not: [{ mappingRevision: gone }, { outcome: "abandoned" }, { route: "pool." }, { decision: "self" }],
  },
  "an obligation of its own": {
    family: obligationRows,
    key: `oblig.ep.manager.${triple}.e1`,
    row: {
      state: "provisional",
      opId: "x",
      policyRevision: 1,
      decision: "self",
      commitKey: "a.b",
      commitBaseRevision: 0,
      commitDigest: digest,
      commitValue: { enc: "b64u", bytes: "" },
    },
    also: [{ commitValue: { enc: "ref", key: "k" } }],
    not: [{ commitValue: { enc: "ref" } }],
  },
  "an abandoned obligation": {
    family: obligationRows,
    key: `oblig.${u}.manager.${triple}.e1`,
    row: { state: "terminal", outcome: "abandoned", opId: op },
    not: [{ state: "rejected" }],
  },
  rejection: {
    family: decisionFacts,
    key: `manager.dec.${triple}.e1`,
    row: { ...fact, decision: "rejected", error: { code: "expired" } },
    not: [{ id: "e2" }, { caller: { ...caller, lifecycleUid: u2 } }, { caller: { ...caller, id: `${o}.x` } }],
  },
  acceptance: {
    family: decisionFacts,
    key: `manager.dec.${triple}.e1`,
    row: {
      ...fact,
      decision: "accepted",
      request: { goalId: "g1" },
      contractDigests: { input: digest, output: digest },
      authzDecision: { revision: 1, epoch: 1 },
      route: "effects",
    },
    not: [{ id: "e2" }, { contractDigests: {} }],
    open: true,
  },
  effect: {
    family: effectFacts,
    key: `manager.eff.${triple}.e1`,
    row: { ...fact, outcome: "ran" },
    also: [{ outcome: "cancelled", cancelled: { opId: "x", target: {} } }],
    not: [{ outcome: "cancelled" }, { id: "e2" }],
    open: true,
  },
  pool: {
    family: poolFacts,
    key: `manager.wrk.fast.${triple}.e1`,
    row: { ...fact, outcome: "any" },
    not: [{ outcome: gone }, { caller: { ...caller, lifecycleUid: u2 } }],
    open: true,
  },
  result: {
    family: goalFacts,
    key: `manager.goal.${triple}.g1.result`,
    row: { ...fact, goalId: "g1", state: "succeeded" },
    not: [{ goalId: "g2" }, { caller: { ...caller, lifecycleUid: u2 } }],
    open: true,
  },
  tombstone: {
    family: goalFacts,
    key: `manager.goal.${triple}.g1.result`,
    row: { goalId: "g1", fingerprint: digest, state: "failed", outcomeDigest: digest },
    not: [{ goalId: "g2" }, { state: "lost" }],
    open: true,
  },
};

const decode = ({ family, key }: Example, row: unknown) => family.decode(key, Buffer.from(JSON.stringify(row)));

describe.each(Object.entries(examples))("%s", (_name, example) => {
  const { row, also = [], not = [], open } = example;

  it("is read back from its own bytes", () => {
    expect(example.family.decode(example.key, canonicalBytes(row))).toEqual(row);
    for (const change of also) {
      const changed = JSON.parse(canonicalText(JSON.parse(JSON.stringify({ ...row, ...change }))));
      expect(decode(example, changed), JSON.stringify(change)).toEqual(changed);
    }
  });

  it("is none with another identity, a missing or an impossible member", () => {
    for (const change of not) expect(decode(example, { ...row, ...change }), JSON.stringify(change)).toBeUndefined();
  });

  it(open ? "may have members that others add" : "has no other member", () => {
    const more = decode(example, { ...row, unheardOf: 1 });
    if (open) expect(more).toBeDefined();
    else expect(more).toBeUndefined();
  });

  it("is none under a key of another form", () => {
    for (const key of [`${example.key}.x`, example.key.replace(/[^.]+$/, "*"), "", "x"]) {
      expect(example.family.decode(key, canonicalBytes(row)), key).toBeUndefined();
    }
  });

  it("is none if it is garbled", () => {
    for (const body of ["", "null", "[]", "{", '"x"', `${canonicalText(row)}x`]) {
      expect(example.family.decode(example.key, Buffer.from(body)), body).toBeUndefined();
    }
  });
});

describe("the keys of the authority stream", () => {
  it("name exactly one family each", () => {
    const ours = Object.values(examples).filter(({ family }) => family.stream === "auth");
    for (const { key, family } of ours) {
      expect(authorityKey(key)?.family, key).toBe(family);
      expect(AUTHORITY_ROWS.filter((rows) => rows.keyOf(key) !== undefined)).toHaveLength(1);
    }
    expect(new Set(ours.map(({ family }) => family)).size).toBe(AUTHORITY_ROWS.length);
    for (const key of ["", "plane.x", "cred.x", `gate.${u}.x`, "assignment.other", "trust"]) {
      expect(authorityKey(key), key).toBeUndefined();
    }
  });
});

describe("the bytes of a row", () => {
  it("are equal for equal facts, in whatever order they were written down", () => {
    const [one, other] = [examples.gate?.row, { generation: 1, state: "open", lifecycleUid: u }];
    expect(sha256Hex(canonicalBytes(one))).toBe(sha256Hex(canonicalBytes(other)));
  });
});
