/** Rows of people, agents and managers, as `auth` would have written them. */
import { sha256Hex } from "../../../shared/canonical.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { type Actor as ActorRow, actorRows } from "../../../shared/rows/actor.ts";
import { type Cred, credRows } from "../../../shared/rows/credential.ts";
import { type EpGate, epGateRows, type Gate, gateRows } from "../../../shared/rows/gate.ts";
import { type Head, headRows } from "../../../shared/rows/head.ts";
import { byManagerRows } from "../../../shared/rows/manager.ts";
import { serviceStatusRows } from "../../../shared/rows/service.ts";
import {
  Actor,
  CredentialId,
  EndpointLabel,
  type Owner,
  Principal,
  principalOf,
  Scope,
  type Uid,
} from "../../../shared/tokens.ts";
import type { TestSpace } from "../../kit/space.ts";

export const MANAGER = EndpointLabel.parse("manager");
const freshUid = (): Uid => newUid(systemPorts);

export interface Changes {
  readonly row?: Partial<ActorRow>;
  readonly head?: Partial<Head>;
  readonly gate?: Partial<Gate>;
  readonly root?: Partial<Cred> | "absent";
}

/** An active incarnation: actor, head, gate, root. */
export async function activate(
  { put }: TestSpace,
  owner: Owner,
  actor: string,
  { row = {}, head = {}, gate = {}, root = {} }: Changes = {},
): Promise<ActorRow> {
  const lifecycleUid = freshUid();
  const credentialId = CredentialId.parse(`root-${freshUid()}`);
  const own = { owner, actor: Actor.parse(actor), lifecycleUid };
  const value: ActorRow = {
    ver: 1,
    ...own,
    kind: "interactive",
    state: "active",
    scope: [],
    allowSubscribe: [],
    allowPublish: [],
    grantedAt: Date.now(),
    grantedBy: Principal.parse("local.operator"),
    ...row,
  };
  await put(actorRows.key(own), value);
  await put(headRows.key(own), {
    ...own,
    managerInstance: "",
    processEpoch: 1,
    state: "active",
    currentCredentialId: credentialId,
    ...head,
  });
  await put(gateRows.key({ uid: lifecycleUid }), { lifecycleUid, state: "open", generation: 1, ...gate });
  if (root === "absent") return value;
  await put(credRows.key({ uid: lifecycleUid, credentialId }), {
    credentialId,
    role: "root",
    holderPrincipal: principalOf(owner, own.actor),
    lifecycleUid,
    sourceChain: ["root"],
    generation: 1,
    state: "active",
    exp: Date.now() + 86_400_000,
    ...root,
  });
  return value;
}

export const scopes = (...names: string[]) => names.map((name) => Scope.parse(name));

export const TOKEN = "the agent's secret";

/** An agent under a parent. */
export const agentOf = (parent: ActorRow, more: Partial<ActorRow> = {}): Partial<ActorRow> => ({
  kind: "managed",
  parent: principalOf(parent.owner, parent.actor),
  tokenHash: sha256Hex(TOKEN) as NonNullable<ActorRow["tokenHash"]>,
  ...more,
});

/** A manager instance of the owner, running unless `changes` say otherwise. */
export async function manager(
  { put }: TestSpace,
  owner: Owner,
  { gate = {}, epoch = 3 }: { gate?: Partial<EpGate>; epoch?: number } = {},
): Promise<Uid> {
  const instanceId = freshUid();
  const key = { endpoint: MANAGER, instanceId };
  await put(epGateRows.key(key), {
    state: "open",
    generation: 1,
    processEpoch: 3,
    registrationRevision: 7,
    nameAuthorityRevision: 0,
    principal: principalOf(owner, Actor.parse(`manager_serve_${instanceId}`)),
    ...gate,
  });
  await put(byManagerRows.key({ owner, instanceId }), {});
  await put(serviceStatusRows.key(key), { epoch, state: "registered", observedSpecRevision: 7 });
  return instanceId;
}
