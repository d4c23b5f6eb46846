/** Who a manager is: five keys whose seeds never leave it, and the members that each of its requests carries. */

import type { NatsConnection } from "@nats-io/nats-core";
import { type Authority, authority } from "../authority.ts";
import type { managerPrepare } from "../contracts/auth/manager/prepare.ts";
import type { Output } from "../contracts/operation.ts";
import { decodeJwt } from "../credentials/jwt.ts";
import { createKeyPair, type KeyPair } from "../credentials/nkeys.ts";
import { actorsOf, IDENTITIES, type Identity } from "../credentials/roles.ts";
import { newNonce, newUid, type Ports } from "../ports.ts";
import { declarationProof } from "../proofs.ts";
import { AccountNkey, type Actor, type Digest, type Owner, RequestId, type Space, UserNkey } from "../tokens.ts";

export class ManagerIdentity {
  readonly keys: Readonly<Record<Identity, KeyPair>>;
  readonly #ports: Ports;
  readonly #declared;
  readonly #actor: Actor;

  /** A new installation, on behalf of an actor with the scope `supervise`. */
  constructor(space: Space, actor: Actor, ports: Ports) {
    this.#ports = ports;
    this.#actor = actor;
    this.keys = Object.fromEntries(IDENTITIES.map((name) => [name, createKeyPair("user", ports)])) as typeof this.keys;
    const ids = IDENTITIES.map((name) => [name, { id: UserNkey.parse(this.keys[name].public) }]);
    const identities = Object.fromEntries(ids) as Record<Identity, { id: UserNkey }>;
    this.#declared = { space, instanceId: newUid(ports), managerLifecycleUid: newUid(ports), identities };
  }

  get instanceId() {
    return this.#declared.instanceId;
  }

  requestId = (): RequestId => RequestId.parse(newNonce(this.#ports));

  /** `manager-register` takes no more than this. */
  registration() {
    const { instanceId, managerLifecycleUid } = this.#declared;
    return { v: 1 as const, requestId: this.requestId(), instanceId, managerLifecycleUid };
  }

  /** The envelope of a request of the manager family (operations §2). */
  service<O extends string>(operation: O) {
    return { ...this.#envelope("manager-service-authority" as const), operation };
  }

  /** Proof U: what is declared, bound together; it authenticates nobody. */
  declaration(owner: Owner, contractArtifacts: readonly unknown[]): Digest {
    return declarationProof({ ...this.#declared, owner, contractArtifacts }) as Digest;
  }

  /** The envelope of a request that proves the live registration. */
  proven<K extends string>(kind: K, { account, epoch, proof }: Registered) {
    return { ...this.#envelope(kind), registrationProof: proof, accountPublicKey: account, processEpoch: epoch };
  }

  /** Asks on the connection of one of the five, or of another key that speaks for it. */
  asking(connection: NatsConnection, owner: Owner, identity: Identity, key: KeyPair = this.keys[identity]): Authority {
    const { space, instanceId, managerLifecycleUid: uid } = this.#declared;
    const caller = { owner, actor: actorsOf(instanceId)[identity], uid };
    const inboxPrefix = `_INBOX_${key.public}`;
    return authority({ connection, space, caller, inboxPrefix, name: "manager", ports: this.#ports });
  }

  #envelope<K extends string>(kind: K) {
    return { v: 1 as const, kind, ...this.#declared, actor: this.#actor, requestId: this.requestId() };
  }
}

/** What later requests say of the registration under which this start serves. */
export interface Registered {
  readonly account: AccountNkey;
  readonly epoch: number;
  /** `nextRegistrationProof` of the activation. */
  readonly proof: Digest;
}

/** A credential names the account it is for. */
export function accountOf({ credentials }: Output<typeof managerPrepare>): AccountNkey {
  const { nats } = decodeJwt(credentials.supervisor.jwt);
  return AccountNkey.parse((nats as { issuer_account?: string }).issuer_account);
}
