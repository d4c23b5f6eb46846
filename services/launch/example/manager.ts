/** A small manager: it makes its keys, has them certified, registers, serves, and asks for runs (README, "Write a manager"). */
import { headers, type NatsConnection } from "@nats-io/nats-core";
import { bareDigest } from "../../../shared/canonical.ts";
import { AuthorityClient } from "../../../shared/client.ts";
import type { managerActivate } from "../../../shared/contracts/auth/manager/activate.ts";
import type { managerPrepare } from "../../../shared/contracts/auth/manager/prepare.ts";
import { managerRegister } from "../../../shared/contracts/auth/manager/register.ts";
import { runAdmit } from "../../../shared/contracts/auth/runs/run-admit.ts";
import { runAttempt } from "../../../shared/contracts/auth/runs/run-attempt.ts";
import { runRevoke } from "../../../shared/contracts/auth/runs/run-revoke.ts";
import type { Output } from "../../../shared/contracts/operation.ts";
import { readManagerArtifacts } from "../../../shared/contracts/profile.ts";
import { decodeJwt } from "../../../shared/credentials/jwt.ts";
import { createKeyPair, type KeyPair } from "../../../shared/credentials/nkeys.ts";
import { actorsOf, IDENTITIES, type Identity } from "../../../shared/credentials/roles.ts";
import { connectUser } from "../../../shared/nats/connect.ts";
import { newNonce, newUid, type Ports } from "../../../shared/ports.ts";
import { declarationProof } from "../../../shared/proofs.ts";
import { serviceSpecRows, serviceStatusRows } from "../../../shared/rows/service.ts";
import { create } from "../../../shared/store/message.ts";
import { Store } from "../../../shared/store/store.ts";
import { artifactSubject } from "../../../shared/subjects.ts";
import {
  AccountNkey,
  type Actor,
  EndpointLabel,
  type Owner,
  RequestId,
  RunId,
  Space,
  TakeoverId,
  type Uid,
  UserNkey,
} from "../../../shared/tokens.ts";
import { ownWork } from "../../../shared/work.ts";
import { CONTRACT_ARTIFACTS } from "./contract.ts";
import { post } from "./http.ts";
import type { Person } from "./person.ts";

const STEP_MS = 30_000;

export class Manager {
  readonly instanceId: Uid;
  readonly #uid: Uid;
  readonly #person: Person;
  readonly #actor: Actor;
  readonly #ports: Ports;
  readonly #space: Space;
  readonly #keys: Record<Identity, KeyPair>;
  readonly #connections: NatsConnection[] = [];
  #owner: Owner | undefined;
  #account: AccountNkey | undefined;
  #client: AuthorityClient | undefined;
  #registered: { epoch: number; proof: Output<typeof managerActivate>["nextRegistrationProof"] } | undefined;

  /** On behalf of `actor`, which has the scope `supervise`. The seeds never leave this object. */
  constructor(person: Person, actor: Actor, ports: Ports) {
    this.#person = person;
    this.#actor = actor;
    this.#ports = ports;
    this.#space = Space.parse(person.bundle.space);
    this.instanceId = newUid(ports);
    this.#uid = newUid(ports);
    const keys = IDENTITIES.map((identity) => [identity, createKeyPair("user", ports)]);
    this.#keys = Object.fromEntries(keys) as Record<Identity, KeyPair>;
  }

  /** Prepare, publish, register, activate, report, connect: afterwards it serves. */
  async start(): Promise<NatsConnection> {
    const prepared = await this.#ask<Output<typeof managerPrepare>>("prepare", {});
    this.#owner = prepared.owner;
    const { nats } = decodeJwt(prepared.credentials.supervisor.jwt);
    this.#account = AccountNkey.parse((nats as { issuer_account?: string }).issuer_account);
    const connection = await this.#connect("supervisor", prepared.credentials.supervisor.jwt);
    this.#client = this.#authority(connection);
    const records = await this.#publishContract(prepared.credentials.executor.jwt);
    const requestId = this.#requestId();
    const { instanceId } = this;
    const registered = await this.#client.call(
      managerRegister,
      { v: 1, requestId, instanceId, managerLifecycleUid: this.#uid },
      { deadlineMs: STEP_MS },
    );
    const registrationProof = declarationProof({
      ...this.#declared(),
      owner: prepared.owner,
      contractArtifacts: CONTRACT_ARTIFACTS,
    });
    const activated = await this.#ask<Output<typeof managerActivate>>("activate", {
      registrationProof,
      contractArtifacts: CONTRACT_ARTIFACTS,
    });
    this.#registered = { epoch: registered.processEpoch, proof: activated.nextRegistrationProof };
    const status = {
      epoch: registered.processEpoch,
      state: "registered",
      observedSpecRevision: registered.registrationRevision,
    };
    await records.commit([create(serviceStatusRows.key(this.#service()), status)], this.#work());
    return this.#connect("serve", activated.credentials.serve.jwt);
  }

  /** Asks to let a run in that somebody asked for on `subject`. */
  admit(runId: RunId, subject: string): Promise<Output<typeof runAdmit>> {
    return this.#call(runAdmit, { ...this.#proven("manager-run-admission"), run: { runId, subject } });
  }

  /** Credentials of the run's first attempt, for keys that stay here. */
  async attempt(runId: RunId): Promise<{ driver: NatsConnection; answer: Output<typeof runAttempt> }> {
    const [driver, mediator] = [createKeyPair("user", this.#ports), createKeyPair("user", this.#ports)];
    const attempt = {
      runId,
      takeoverId: TakeoverId.parse(Buffer.from(this.#ports.random(8)).toString("hex")),
      epoch: 1,
      fencingToken: 1,
      driverId: UserNkey.parse(driver.public),
      mediatorId: UserNkey.parse(mediator.public),
    };
    const answer = await this.#call(runAttempt, { ...this.#proven("manager-run-attempt"), attempt });
    return { driver: await this.#open("driver", answer.credentials.driver.jwt, driver), answer };
  }

  revoke(runId: RunId, reason: string): Promise<Output<typeof runRevoke>> {
    return this.#call(runRevoke, { ...this.#proven("manager-run-revoke"), revoke: { runId, reason } });
  }

  async stop(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  /** The executor writes what registration reads: every artifact, then the service record. */
  async #publishContract(jwt: string): Promise<Store> {
    const connection = await this.#connect("executor", jwt);
    const records = new Store({ space: this.#space, ports: this.#ports, connections: { space: connection } });
    const { artifacts, clusterDigest } = readManagerArtifacts(CONTRACT_ARTIFACTS);
    for (const { digest, text } of artifacts) {
      await publishOnce(connection, artifactSubject(this.#space, bareDigest(digest)), text);
    }
    const spec = {
      endpoint: MANAGER,
      owner: this.#owner as Owner,
      clusterDigests: [clusterDigest],
      protocol: { v: 2 as const },
    };
    await records.commit([create(serviceSpecRows.key(this.#service()), spec)], this.#work());
    return records;
  }

  #connect(identity: Identity, jwt: string): Promise<NatsConnection> {
    return this.#open(identity, jwt, this.#keys[identity]);
  }

  async #open(name: string, jwt: string, key: KeyPair): Promise<NatsConnection> {
    const servers = this.#person.bundle.server;
    const connection = await connectUser({ servers, name, user: () => ({ jwt, key }), reconnect: false });
    this.#connections.push(connection);
    return connection;
  }

  #authority(connection: NatsConnection): AuthorityClient {
    return new AuthorityClient({
      connection,
      space: this.#space,
      caller: { owner: this.#owner as Owner, actor: actorsOf(this.instanceId).supervisor, uid: this.#uid },
      inboxPrefix: `_INBOX_${this.#keys.supervisor.public}`,
      name: "manager",
      ports: this.#ports,
    });
  }

  /** Over HTTP, with the person's login as the proof: what a manager without credentials can do. */
  async #ask<T>(operation: string, more: object): Promise<T> {
    const request = { v: 1, kind: "manager-service-authority", operation, ...this.#envelope(), ...more };
    const { managerAuthorityUrl } = this.#person.bundle.userAuth.endpoints;
    return post(managerAuthorityUrl, { idpToken: await this.#person.idToken(), request });
  }

  get #call(): AuthorityClient["call"] {
    if (!this.#client) throw new TypeError("the manager has not started");
    return this.#client.call.bind(this.#client);
  }

  #proven<K extends string>(kind: K) {
    if (!this.#registered || !this.#account) throw new TypeError("the manager has not started");
    return {
      v: 1 as const,
      kind,
      ...this.#envelope(),
      registrationProof: this.#registered.proof,
      accountPublicKey: this.#account,
      processEpoch: this.#registered.epoch,
    };
  }

  #envelope() {
    return { ...this.#declared(), actor: this.#actor, requestId: this.#requestId() };
  }

  #declared() {
    const ids = IDENTITIES.map((identity) => [identity, { id: this.#keys[identity].public }]);
    const identities = Object.fromEntries(ids) as Record<Identity, { id: UserNkey }>;
    return { space: this.#space, instanceId: this.instanceId, managerLifecycleUid: this.#uid, identities };
  }

  #service() {
    return { endpoint: MANAGER, instanceId: this.instanceId };
  }

  #requestId = (): RequestId => RequestId.parse(newNonce(this.#ports));
  #work = () => ownWork(this.#ports, STEP_MS);
}

const MANAGER = EndpointLabel.parse("manager");

/** Under the digest of its bytes: the broker refuses a second message there, and the first has the same bytes. */
async function publishOnce(connection: NatsConnection, subject: string, text: string): Promise<void> {
  const expected = headers();
  expected.set("Nats-Expected-Last-Subject-Sequence", "0");
  await connection.request(subject, text, { headers: expected, timeout: STEP_MS });
}

export const newRunId = (ports: Ports): RunId => RunId.parse(`run-${Buffer.from(ports.random(16)).toString("hex")}`);
