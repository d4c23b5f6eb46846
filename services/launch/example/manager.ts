/** A small manager: known, registered, certified, serving, and asking for runs (README, "Write a manager"). */
import type { NatsConnection } from "@nats-io/nats-core";
import { type Authority, authority } from "../../../shared/authority.ts";
import { createKeyPair, type KeyPair } from "../../../shared/credentials/nkeys.ts";
import { managerHttp } from "../../../shared/manager-http.ts";
import { connectUser } from "../../../shared/nats/connect.ts";
import type { Ports } from "../../../shared/ports.ts";
import { orThrow } from "../../../shared/result.ts";
import { type Actor, RunId, Space, TakeoverId, UserNkey } from "../../../shared/tokens.ts";
import { CONTRACT_ARTIFACTS } from "./contract.ts";
import { accountOf, ManagerIdentity, type Registered } from "./identity.ts";
import type { Person } from "./person.ts";
import { Publisher } from "./publish.ts";

export class Manager {
  readonly identity: ManagerIdentity;
  /** The person's connection data and login, for what is asked before there are credentials. */
  readonly #person: Person;
  readonly #ports: Ports;
  readonly #space: Space;
  readonly #connections: NatsConnection[] = [];
  #started: { ask: Authority; registered: Registered } | undefined;

  constructor(person: Person, actor: Actor, ports: Ports) {
    this.#person = person;
    this.#ports = ports;
    this.#space = Space.parse(person.bundle.space);
    this.identity = new ManagerIdentity(this.#space, actor, ports);
  }

  /** Prepare, publish, register, activate, report, connect: afterwards it serves. */
  async start(): Promise<NatsConnection> {
    const { identity: me } = this;
    const { managerAuthorityUrl: url } = this.#person.bundle.userAuth.endpoints;
    const http = managerHttp({ url, idpToken: () => this.#person.idToken(), ports: this.#ports });
    const prepared = orThrow(await http.managerPrepare(me.service("prepare")));
    const { owner, credentials } = prepared;
    const ask = this.#authority(await this.#connect("supervisor", credentials.supervisor.jwt), owner);
    const publisher = new Publisher(
      await this.#connect("executor", credentials.executor.jwt),
      this.#space,
      this.#ports,
    );
    await publisher.contract(owner, me.instanceId);
    const place = orThrow(await ask.managerRegister(me.registration()));
    const registrationProof = me.declaration(owner, CONTRACT_ARTIFACTS);
    const contractArtifacts = [...CONTRACT_ARTIFACTS];
    const active = orThrow(
      await ask.managerActivate({ ...me.service("activate"), registrationProof, contractArtifacts }),
    );
    await publisher.status(place);
    const registered = { account: accountOf(prepared), epoch: place.processEpoch, proof: active.nextRegistrationProof };
    this.#started = { ask, registered };
    return this.#connect("serve", active.credentials.serve.jwt);
  }

  /** Asks to let a run in that somebody asked for on `subject`. */
  async admit(runId: RunId, subject: string) {
    const { ask, registered } = this.#running();
    const request = this.identity.proven("manager-run-admission", registered);
    return orThrow(await ask.runAdmit({ ...request, run: { runId, subject } }));
  }

  /** Credentials of the run's first attempt, for keys that stay here. */
  async attempt(runId: RunId) {
    const { ask, registered } = this.#running();
    const [driver, mediator] = [createKeyPair("user", this.#ports), createKeyPair("user", this.#ports)];
    const takeoverId = TakeoverId.parse(Buffer.from(this.#ports.random(8)).toString("hex"));
    const keys = { driverId: UserNkey.parse(driver.public), mediatorId: UserNkey.parse(mediator.public) };
    const attempt = { runId, takeoverId, epoch: 1, fencingToken: 1, ...keys };
    const answer = orThrow(
      await ask.runAttempt({ ...this.identity.proven("manager-run-attempt", registered), attempt }),
    );
    return { driver: await this.#open("driver", answer.credentials.driver.jwt, driver), answer };
  }

  async revoke(runId: RunId, reason: string) {
    const { ask, registered } = this.#running();
    const request = this.identity.proven("manager-run-revoke", registered);
    return orThrow(await ask.runRevoke({ ...request, revoke: { runId, reason } }));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  #running() {
    if (!this.#started) throw new TypeError("the manager has not started");
    return this.#started;
  }

  #authority(connection: NatsConnection, owner: Parameters<ManagerIdentity["caller"]>[0]): Authority {
    const inboxPrefix = `_INBOX_${this.identity.keys.supervisor.public}`;
    const caller = this.identity.caller(owner);
    return authority({ connection, space: this.#space, caller, inboxPrefix, name: "manager", ports: this.#ports });
  }

  #connect(identity: keyof ManagerIdentity["keys"], jwt: string): Promise<NatsConnection> {
    return this.#open(identity, jwt, this.identity.keys[identity]);
  }

  async #open(name: string, jwt: string, key: KeyPair): Promise<NatsConnection> {
    const servers = this.#person.bundle.server;
    const connection = await connectUser({ servers, name, user: () => ({ jwt, key }), reconnect: false });
    this.#connections.push(connection);
    return connection;
  }
}

export const newRunId = (ports: Ports): RunId => RunId.parse(`run-${Buffer.from(ports.random(16)).toString("hex")}`);
