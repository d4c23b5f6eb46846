/** What a manager's executor writes: the contract it serves under, and its two service records (wire §8). */
import { headers, type NatsConnection } from "@nats-io/nats-core";
import { bareDigest } from "../canonical.ts";
import type { managerRegister } from "../contracts/auth/manager/register.ts";
import type { Output } from "../contracts/operation.ts";
import { readManagerArtifacts } from "../contracts/profile.ts";
import { PUBLISH_MS } from "../limits.ts";
import type { Ports } from "../ports.ts";
import { serviceSpecRows, serviceStatusRows } from "../rows/service.ts";
import { create } from "../store/message.ts";
import { Store } from "../store/store.ts";
import { artifactSubject } from "../subjects.ts";
import { MANAGER, type Owner, type Space, type Uid } from "../tokens.ts";
import { ownWork } from "../work.ts";

export class Publisher {
  readonly #connection: NatsConnection;
  readonly #space: Space;
  readonly #ports: Ports;
  readonly #records: Store;

  constructor(connection: NatsConnection, space: Space, ports: Ports) {
    this.#connection = connection;
    this.#space = space;
    this.#ports = ports;
    this.#records = new Store({ space, ports, connections: { space: connection } });
  }

  /** Before the registration: every artifact, then the record that names them. */
  async contract(owner: Owner, instanceId: Uid, contractArtifacts: readonly unknown[]): Promise<void> {
    const { artifacts, clusterDigest } = readManagerArtifacts(contractArtifacts);
    for (const { digest, text } of artifacts) await this.#once(bareDigest(digest), text);
    const spec = { endpoint: MANAGER, owner, clusterDigests: [clusterDigest], protocol: { v: 2 as const } };
    const key = serviceSpecRows.key({ endpoint: MANAGER, instanceId });
    await this.#records.commit([create(key, spec)], ownWork(this.#ports, PUBLISH_MS));
  }

  /** After it: which start serves. */
  async status({
    instanceId,
    processEpoch: epoch,
    registrationRevision,
  }: Output<typeof managerRegister>): Promise<void> {
    const status = { epoch, state: "registered", observedSpecRevision: registrationRevision };
    const key = serviceStatusRows.key({ endpoint: MANAGER, instanceId });
    await this.#records.commit([create(key, status)], ownWork(this.#ports, PUBLISH_MS));
  }

  /** Under the digest of its bytes: the broker refuses a second message there, and the first has the same bytes. */
  async #once(hex: string, text: string): Promise<void> {
    const expected = headers();
    expected.set("Nats-Expected-Last-Subject-Sequence", "0");
    await this.#connection.request(artifactSubject(this.#space, hex), text, { headers: expected, timeout: PUBLISH_MS });
  }
}
