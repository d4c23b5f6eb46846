/** Lifecycles as their activation leaves them, written row by row; and what a retirement is asked with. */
import { rootOf } from "../../../services/auth/actors/activate.ts";
import { interactiveRetireOpId, retireOpId } from "../../../shared/credentials/roles.ts";
import { newNonce, newUid, systemPorts } from "../../../shared/ports.ts";
import { type Actor as ActorRow, actorRows } from "../../../shared/rows/actor.ts";
import { credRows, epCredRows } from "../../../shared/rows/credential.ts";
import { frontierRows } from "../../../shared/rows/frontier.ts";
import { type Gate, gateRows } from "../../../shared/rows/gate.ts";
import { type Head, headRows } from "../../../shared/rows/head.ts";
import { type Stage, stageRows } from "../../../shared/rows/stage.ts";
import { uidRows } from "../../../shared/rows/uid.ts";
import {
  Actor,
  Hex64,
  Owner,
  Principal,
  principalOf,
  type RequestId,
  type Triple,
  type Uid,
} from "../../../shared/tokens.ts";
import type { TestSpace } from "../../kit/space.ts";
import { MANAGER } from "./scene.ts";

const ports = systemPorts;
const OPERATOR = Principal.parse("local.operator");

export const requestId = (): RequestId => newNonce(ports) as string as RequestId;

/** Somebody nobody else is. */
export const freshOwner = (): Owner =>
  Owner.parse(`u_${[...ports.random(26)].map((byte) => "abcdefghijklmnopqrstuvwxyz234567"[byte % 32]).join("")}`);

export interface Lifecycle extends Triple {
  /** That of its retirement. */
  readonly opId: Uid;
}

export interface Shape {
  readonly owner?: Owner;
  readonly kind?: ActorRow["kind"];
  readonly state?: ActorRow["state"];
  readonly scope?: ActorRow["scope"];
  readonly gate?: Partial<Gate>;
  readonly head?: Partial<Head>;
}

/** An agent prepared for its retirement, unless said otherwise: its row is revoked, its gate open. */
export async function lifecycle(space: TestSpace, shape: Shape = {}): Promise<Lifecycle> {
  const { owner = freshOwner(), kind = "managed", state = kind === "managed" ? "revoked" : "active" } = shape;
  const uid = newUid(ports);
  const actor = Actor.parse(`coder_${uid.slice(0, 8)}`);
  const now = ports.now();
  const root = rootOf({ owner, actor, lifecycleUid: uid }, newUid(ports), now);
  const revoked = { revokedAt: now, revokedBy: OPERATOR };
  await space.put(actorRows.key({ owner, actor }), {
    ver: 1,
    owner,
    actor,
    kind,
    state,
    lifecycleUid: uid,
    scope: shape.scope ?? [],
    allowSubscribe: [],
    allowPublish: [],
    ...(kind === "managed" ? { tokenHash: Hex64.parse("a".repeat(64)) } : {}),
    grantedAt: now,
    grantedBy: OPERATOR,
    ...(state === "revoked" ? revoked : {}),
  });
  await space.put(headRows.key({ owner, actor }), {
    owner,
    actor,
    lifecycleUid: uid,
    managerInstance: "",
    processEpoch: 1,
    state: "active",
    currentCredentialId: root.credentialId,
    ...shape.head,
  });
  await space.put(gateRows.key({ uid }), { lifecycleUid: uid, state: "open", generation: 1, ...shape.gate });
  await space.put(uidRows.key({ uid }), { owner, actor, mintedBy: OPERATOR });
  await space.put(credRows.key({ uid, credentialId: root.credentialId }), root);
  return { owner, actor, uid, opId: kind === "managed" ? retireOpId(uid) : interactiveRetireOpId(uid) };
}

/** The arguments of `actor-revoke` and `agent-retire`. */
export const named = ({ owner, actor, uid }: Triple) => ({ requestId: requestId(), owner, actor, lifecycleUid: uid });

/** The rows of a lifecycle that a retirement moves. */
export async function rowsOf({ store }: TestSpace, { owner, actor, uid, opId }: Lifecycle) {
  const [row, head, gate, stage, frontier] = await Promise.all([
    store.read(actorRows.key({ owner, actor })),
    store.read(headRows.key({ owner, actor })),
    store.read(gateRows.key({ uid })),
    store.read(stageRows.key({ opId })),
    store.read(frontierRows.key({ uid })),
  ]);
  return { actor: row?.value, head: head?.value, gate: gate?.value, stage: stage?.value, frontier };
}

/** States of all credential rows of a lifecycle, or of a manager's instance. */
export async function credentialStates({ store }: TestSpace, of: { uid: Uid } | { instanceId: Uid }) {
  const { entries } =
    "uid" in of
      ? await store.scan(credRows, { uid: of.uid })
      : await store.scan(epCredRows, { endpoint: MANAGER, instanceId: of.instanceId });
  return entries.map(({ value }) => value.state);
}

/** As the freeze of its retirement writes it. */
export const stageOf = ({ owner, actor, uid, opId }: Lifecycle): Stage => ({
  v: 1,
  opId,
  kind: "retirement",
  gate: `gate.${uid}`,
  fromGeneration: 1,
  principal: principalOf(owner, actor),
  evicted: [],
  startedBy: "test",
  at: 1,
  phase: "frozen",
});
