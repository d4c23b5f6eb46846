/** A person and an agent of hers with every row of theirs in order, and the bearers they would hold. */
import { KeyObject } from "node:crypto";
import { generateKeyPair } from "jose";
import { type BearerAct, type KeyOf, type SigningKey, signBearer } from "../../../shared/bearer.ts";
import { newNonce, newUid, systemPorts } from "../../../shared/ports.ts";
import { type Actor as ActorRow, actorRows } from "../../../shared/rows/actor.ts";
import { type Cred, credRows } from "../../../shared/rows/credential.ts";
import type { Key } from "../../../shared/rows/family.ts";
import { gateRows } from "../../../shared/rows/gate.ts";
import { type Head, headRows } from "../../../shared/rows/head.ts";
import {
  Actor,
  ChannelPattern,
  type CredentialId,
  Hex64,
  Owner,
  type Principal,
  principalOf,
  Scope,
  Space,
  type Uid,
} from "../../../shared/tokens.ts";

export const space = Space.parse("demo");
export const issuer = "urn:cotal:auth:demo";
export const alice = Owner.parse("u_qzgcmqkl3272ed2stsjzbvrqga");
export const bob = Owner.parse("u_5u2jprrmk6itxm7le3ec7flrxm");

/** Where rows are put. */
export interface Put {
  put<V>(key: Key<V>, value: V): unknown;
}

export interface Identity {
  readonly owner: Owner;
  readonly actor: Actor;
  readonly uid: Uid;
  readonly credentialId: CredentialId;
  readonly row: ActorRow;
  readonly root: Cred;
}

export interface Grant {
  readonly owner?: Owner;
  readonly actor?: string;
  readonly scope?: readonly string[];
  readonly allowSubscribe?: readonly string[];
  readonly allowPublish?: readonly string[];
  /** Makes it a managed actor. */
  readonly parent?: Principal;
}

export function grant(grant: Grant = {}): Identity {
  const owner = grant.owner ?? alice;
  const actor = Actor.parse(grant.actor ?? "cli");
  const uid = newUid(systemPorts);
  const credentialId = `root-${newUid(systemPorts)}` as CredentialId;
  const { parent } = grant;
  const row: ActorRow = {
    ver: 1,
    owner,
    actor,
    lifecycleUid: uid,
    kind: parent ? "managed" : "interactive",
    state: "active",
    scope: (grant.scope ?? []).map((scope) => Scope.parse(scope)),
    allowSubscribe: (grant.allowSubscribe ?? ["general"]).map((channel) => ChannelPattern.parse(channel)),
    allowPublish: (grant.allowPublish ?? ["general"]).map((channel) => ChannelPattern.parse(channel)),
    ...(parent ? { parent, tokenHash: Hex64.parse("0".repeat(64)) } : {}),
    grantedAt: Date.now(),
    grantedBy: principalOf(Owner.parse("local"), Actor.parse("operator")),
  };
  const root: Cred = {
    credentialId,
    role: "root",
    holderPrincipal: principalOf(owner, actor),
    lifecycleUid: uid,
    sourceChain: ["root"],
    generation: 1,
    state: "active",
    exp: Date.now() + 86_400_000,
  };
  return { owner, actor, uid, credentialId, row, root };
}

export const keysOf = ({ owner, actor, uid, credentialId }: Identity) => ({
  row: actorRows.key({ owner, actor }),
  gate: gateRows.key({ uid }),
  head: headRows.key({ owner, actor }),
  root: credRows.key({ uid, credentialId }),
});

/** Puts the four rows of an identity in order. */
export async function install(rows: Put, identity: Identity): Promise<Identity> {
  const { owner, actor, uid, credentialId, row, root } = identity;
  const keys = keysOf(identity);
  const head: Head = {
    owner,
    actor,
    lifecycleUid: uid,
    managerInstance: "none",
    processEpoch: 1,
    state: "active",
    currentCredentialId: credentialId,
  };
  await Promise.all([
    rows.put(keys.row, row),
    rows.put(keys.gate, { lifecycleUid: uid, state: "open", generation: 1 }),
    rows.put(keys.head, head),
    rows.put(keys.root, root),
  ]);
  return identity;
}

export interface BearerIssuer {
  readonly keyOf: KeyOf;
  readonly kid: string;
  readonly publicKey: KeyObject;
  /** A bearer of the identity; `act` overrides and adds claims. */
  bearer(identity: Identity, options?: BearerOptions): Promise<string>;
}

export interface BearerOptions {
  readonly act?: Partial<BearerAct>;
  readonly space?: Space;
  readonly kid?: string;
  readonly ttlS?: number;
  /** Unix milliseconds of the signer's clock. */
  readonly now?: number;
}

export async function bearerIssuer(): Promise<BearerIssuer> {
  const { privateKey, publicKey: webKey } = await generateKeyPair("EdDSA", { crv: "Ed25519", extractable: true });
  const publicKey = KeyObject.from(webKey);
  const key: SigningKey = { kid: "k1", privateKey };
  return {
    kid: key.kid,
    publicKey,
    keyOf: async (kid) => (kid === key.kid ? { issuer, publicKey } : undefined),
    async bearer({ owner, actor, uid, credentialId, row }, options = {}) {
      const act: BearerAct = {
        owner,
        actor,
        scope: row.scope,
        ...(row.parent === undefined ? {} : { parent: row.parent }),
        lifecycleUid: uid,
        credentialId,
        ...options.act,
      };
      const ports = { now: () => options.now ?? Date.now() };
      const request = {
        issuer,
        space: options.space ?? space,
        act,
        notAfter: [],
        ...(options.ttlS === undefined ? {} : { ttlS: options.ttlS }),
      };
      return (await signBearer(request, { ...key, kid: options.kid ?? key.kid }, ports)).token;
    },
  };
}

export const freshNonce = () => newNonce(systemPorts);
