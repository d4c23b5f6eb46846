/** A small manager that does what a real one does to serve: prepare, publish, register, activate, write its status, serve. */
import { headers, type NatsConnection } from "@nats-io/transport-node";
import { AuthorityClient } from "../../shared/client.ts";
import { managerActivate } from "../../shared/contracts/auth/manager/activate.ts";
import { managerPrepare } from "../../shared/contracts/auth/manager/prepare.ts";
import { managerRegister } from "../../shared/contracts/auth/manager/register.ts";
import type { Input, Output } from "../../shared/contracts/operation.ts";
import { createKeyPair, type KeyPair } from "../../shared/credentials/nkeys.ts";
import { actorsOf, IDENTITIES, type Identity } from "../../shared/credentials/roles.ts";
import { newNonce, newUid, systemPorts } from "../../shared/ports.ts";
import { declarationProof } from "../../shared/proofs.ts";
import { serviceSpecRows, serviceStatusRows } from "../../shared/rows/service.ts";
import { create, swap } from "../../shared/store/message.ts";
import { Store } from "../../shared/store/store.ts";
import { artifactSubject } from "../../shared/subjects.ts";
import type { AccountNkey, Digest, EndpointLabel, RequestId, Uid } from "../../shared/tokens.ts";
import { RunId, TakeoverId } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import { ManagerContract } from "./manager-contract.ts";
import type { Person } from "./person.ts";
import type { TestSpace } from "./space.ts";

const ports = systemPorts;
const MANAGER = "manager" as string as EndpointLabel;
const STEPS = ["none", "prepare", "publish", "register", "activate", "serve"] as const;

export interface ManagerOptions {
  /** The last step taken; `none` for an instance that is only described. */
  readonly upTo?: (typeof STEPS)[number];
  readonly contract?: ManagerContract;
}

type Coordinates = Output<typeof managerRegister>;

export interface TestManager {
  readonly person: Person;
  readonly instanceId: Uid;
  readonly uid: Uid;
  readonly keys: Readonly<Record<Identity, KeyPair>>;
  readonly contract: ManagerContract;
  /** What its credentials say after the last step that gave them. */
  readonly credentials: Readonly<Record<string, string>>;
  /** Asks on its supervisor connection. */
  readonly client: AuthorityClient;
  /** Its registration as last answered. */
  readonly coordinates: Coordinates;
  /** Proof K over the live registration, as the last activation gave it. */
  readonly proof: Digest;
  /** The request envelope but for `kind` and `operation`. */
  envelope(): { v: 1; space: Input<typeof managerPrepare>["space"]; requestId: RequestId } & Pick<
    Input<typeof managerPrepare>,
    "actor" | "instanceId" | "managerLifecycleUid" | "identities"
  >;
  /** The envelope with K and account, as the run operations take it. */
  proven(): ReturnType<TestManager["envelope"]> & {
    registrationProof: Digest;
    accountPublicKey: AccountNkey;
    processEpoch: number;
  };
  /** Proof U. */
  declaration(artifacts?: readonly unknown[]): Digest;
  connection(identity: Identity): Promise<NatsConnection>;
  /** Opens a connection under any credential that was issued to one of its keys. */
  connectAs(jwt: string, key: KeyPair, name?: string): Promise<NatsConnection>;
  prepare(): Promise<Output<typeof managerPrepare>>;
  publish(): Promise<void>;
  register(): Promise<Coordinates>;
  activate(): Promise<Output<typeof managerActivate>>;
  serve(): Promise<void>;
}

export const freshRunId = (): RunId => RunId.parse(`run-${Buffer.from(ports.random(16)).toString("hex")}`);
export const freshTakeoverId = (): TakeoverId => TakeoverId.parse(Buffer.from(ports.random(8)).toString("hex"));

export async function startManager(
  space: TestSpace,
  person: Person,
  options: ManagerOptions = {},
): Promise<TestManager> {
  const manager = await Manager.of(space, person, options.contract ?? new ManagerContract());
  const { upTo = "serve" } = options;
  for (const step of STEPS.slice(1, STEPS.indexOf(upTo) + 1)) if (step !== "none") await manager[step]();
  return manager;
}

class Manager implements TestManager {
  readonly person: Person;
  readonly instanceId = newUid(ports);
  readonly uid = newUid(ports);
  readonly keys: Readonly<Record<Identity, KeyPair>>;
  readonly contract: ManagerContract;
  readonly credentials: Record<string, string> = {};
  readonly #space: TestSpace;
  readonly #account: AccountNkey;
  readonly #connections = new Map<string, NatsConnection>();
  #client: AuthorityClient | undefined;
  #coordinates: Coordinates | undefined;
  #proof: Digest | undefined;

  private constructor(space: TestSpace, person: Person, contract: ManagerContract, account: AccountNkey) {
    this.#space = space;
    this.#account = account;
    this.person = person;
    this.contract = contract;
    this.keys = Object.fromEntries(IDENTITIES.map((identity) => [identity, createKeyPair("user")])) as Record<
      Identity,
      KeyPair
    >;
  }

  static async of(space: TestSpace, person: Person, contract: ManagerContract): Promise<Manager> {
    return new Manager(space, person, contract, await space.dataAccount());
  }

  get client(): AuthorityClient {
    return given(this.#client, "connected");
  }
  get coordinates(): Coordinates {
    return given(this.#coordinates, "registered");
  }
  get proof(): Digest {
    return given(this.#proof, "activated");
  }

  envelope() {
    const identities = Object.fromEntries(IDENTITIES.map((name) => [name, { id: this.keys[name].public }]));
    return {
      v: 1 as const,
      space: this.#space.space,
      actor: this.person.actor,
      instanceId: this.instanceId,
      managerLifecycleUid: this.uid,
      requestId: newNonce(ports) as string as RequestId,
      identities: identities as Input<typeof managerPrepare>["identities"],
    };
  }

  proven() {
    return {
      ...this.envelope(),
      registrationProof: this.proof,
      accountPublicKey: this.#account,
      processEpoch: this.coordinates.processEpoch,
    };
  }

  declaration(contractArtifacts: readonly unknown[] = []): Digest {
    const { owner } = this.person;
    return declarationProof({ ...this.envelope(), owner, contractArtifacts }) as Digest;
  }

  async connectAs(jwt: string, key: KeyPair, name = "manager"): Promise<NatsConnection> {
    return this.#space.enter(name, { jwt, key });
  }

  async connection(identity: Identity): Promise<NatsConnection> {
    const jwt = given(this.credentials[identity], "issued");
    const known = this.#connections.get(jwt);
    if (known && !known.isClosed()) return known;
    const connection = await this.connectAs(jwt, this.keys[identity], identity);
    this.#connections.set(jwt, connection);
    return connection;
  }

  async prepare() {
    const args = { ...this.envelope(), kind: "manager-service-authority" as const, operation: "prepare" as const };
    const answer = await this.person.ask(managerPrepare, args);
    this.#take(answer.credentials);
    const connection = await this.connection("supervisor");
    this.#client = new AuthorityClient({
      connection,
      space: this.#space.space,
      caller: { owner: this.person.owner, actor: actorsOf(this.instanceId).supervisor, uid: this.uid },
      inboxPrefix: `_INBOX_${this.keys.supervisor.public}`,
      name: "manager",
      ports,
    });
    return answer;
  }

  /** Artifacts, each once, then the record of what is served. */
  async publish() {
    const executor = await this.connection("executor");
    const absent = headers();
    absent.set("Nats-Expected-Last-Subject-Sequence", "0");
    // Whoever was first, the bytes under a digest are the same: a refusal is as good.
    await Promise.all(
      this.contract.registered.artifacts.map(({ digest, text }) =>
        executor.request(artifactSubject(this.#space.space, digest.slice("sha256:".length)), text, {
          headers: absent,
          timeout: 5_000,
        }),
      ),
    );
    const store = await this.#executor();
    const { owner } = this.person;
    const value = {
      endpoint: MANAGER,
      owner,
      clusterDigests: [this.contract.registered.clusterDigest],
      protocol: { v: 2 as const },
    };
    const key = serviceSpecRows.key({ endpoint: MANAGER, instanceId: this.instanceId });
    const before = await store.read(key);
    await store.commit([before ? swap(before, value) : create(key, value)], ownWork(ports, 5_000));
  }

  async register() {
    // As a manager that was started again: nothing of its former self is connected, and comes back after a kick.
    for (const identity of ["serve", "goalWriter", "sessionLedger"] as const) {
      await this.#connections.get(this.credentials[identity] ?? "")?.close();
    }
    const { instanceId, uid: managerLifecycleUid } = this;
    const requestId = newNonce(ports) as string as RequestId;
    this.#coordinates = await this.client.call(managerRegister, { v: 1, requestId, instanceId, managerLifecycleUid });
    return this.#coordinates;
  }

  async activate() {
    const contractArtifacts = [...this.contract.documents];
    const answer = await this.client.call(managerActivate, {
      ...this.envelope(),
      kind: "manager-service-authority",
      operation: "activate",
      registrationProof: this.declaration(contractArtifacts),
      contractArtifacts,
    });
    this.#take(answer.credentials);
    this.#proof = answer.nextRegistrationProof;
    return answer;
  }

  /** Subscribes every command on the instance's own rail, then tells that it lives. */
  async serve() {
    const connection = await this.connection("serve");
    for (const { name } of this.contract.registered.commands) {
      for (const rail of ["ep", "ep.v1"]) {
        connection.subscribe(`cotal.${this.#space.space}.${rail}.inst.manager.${this.instanceId}.${name}.>`, {
          callback: () => {},
        });
      }
    }
    await connection.flush();
    const { processEpoch: epoch, registrationRevision: observedSpecRevision } = this.coordinates;
    const key = serviceStatusRows.key({ endpoint: MANAGER, instanceId: this.instanceId });
    const store = await this.#executor();
    const before = await store.read(key);
    const value = { epoch, state: "registered", observedSpecRevision };
    await store.commit([before ? swap(before, value) : create(key, value)], ownWork(ports, 5_000));
  }

  async #executor(): Promise<Store> {
    const connections = { space: await this.connection("executor") };
    return new Store({ space: this.#space.space, ports, connections });
  }

  #take(credentials: { readonly [name: string]: { readonly jwt: string } }): void {
    for (const [name, { jwt }] of Object.entries(credentials)) this.credentials[name] = jwt;
  }
}

function given<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`this manager is not ${what} yet`);
  return value;
}
