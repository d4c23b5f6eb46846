/** One valid value of each row that many tests need, under fresh ids. */
import { newUid, systemPorts } from "../../shared/ports.ts";
import type { Admission } from "../../shared/rows/admission.ts";
import type { Cred, EpCred } from "../../shared/rows/credential.ts";
import type { Gate } from "../../shared/rows/gate.ts";
import {
  Actor,
  CredentialId,
  EndpointLabel,
  Generation,
  Owner,
  Principal,
  type RunId,
  Space,
  type Uid,
} from "../../shared/tokens.ts";

export const OWNER = Owner.parse(`u_${"a".repeat(26)}`);
export const ACTOR = Actor.parse("coder");
export const PRINCIPAL = Principal.parse(`${OWNER}.${ACTOR}`);
export const MANAGER = EndpointLabel.parse("manager");

export const freshUid = (): Uid => newUid(systemPorts);
export const freshCredentialId = (): CredentialId =>
  CredentialId.parse(`sha256-${Buffer.from(systemPorts.random(32)).toString("hex")}`);

export const openGate = (uid: Uid): Gate => ({ lifecycleUid: uid, state: "open", generation: 1 });

export const frozenGate = (uid: Uid, opId = freshUid()): Gate => ({
  lifecycleUid: uid,
  state: "frozen",
  generation: 1,
  op: { opId, kind: "retirement" },
});

export const rootCred = (uid: Uid, more: Partial<Cred> = {}): Cred => ({
  credentialId: CredentialId.parse(`root-${uid}`),
  role: "root",
  holderPrincipal: PRINCIPAL,
  lifecycleUid: uid,
  sourceChain: ["root"],
  generation: 1,
  state: "active",
  exp: Date.now() + 600_000,
  ...more,
});

export const serveCred = (uid: Uid, more: Partial<EpCred> = {}): EpCred => ({
  ...rootCred(uid),
  credentialId: freshCredentialId(),
  role: "executor",
  credentialKey: `U${"A".repeat(55)}` as EpCred["credentialKey"],
  endpoint: MANAGER,
  processEpoch: 0,
  registrationRevision: 0,
  nameAuthorityRevision: 0,
  ...more,
});

export const admission = (runId: RunId): Admission => {
  const rule = { allow: { mode: "none" as const }, deny: [] };
  const uid = freshUid();
  const generation = Generation.parse("a".repeat(32));
  return {
    version: 1,
    space: Space.parse("demo"),
    endpoint: MANAGER,
    runId,
    instanceId: freshUid(),
    caller: { owner: OWNER, actor: ACTOR, uid, generation },
    ceiling: { publish: rule, subscribe: rule },
    provenance: {
      kind: "issued",
      ref: { space: Space.parse("demo"), owner: OWNER, actor: ACTOR, uid, generation },
      resolvedRevision: 1,
    },
    admittedAt: Date.now(),
  };
};
