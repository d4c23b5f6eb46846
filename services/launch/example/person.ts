/** A person's client: log in, exchange the login for a bearer, connect to the broker with it (README, "Log in"). */
import type { NatsConnection } from "@nats-io/nats-core";
import { decodeJwt } from "jose";
import { schemaClosure } from "../../../shared/contracts/operation.ts";
import { parseCreds } from "../../../shared/credentials/creds.ts";
import { keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import type { EndpointRequest } from "../../../shared/envelope.ts";
import { acceptedToken } from "../../../shared/issued.ts";
import { connectUser } from "../../../shared/nats/connect.ts";
import { newNonce, type Ports } from "../../../shared/ports.ts";
import { acceptedRows } from "../../../shared/rows/accepted.ts";
import { placeOf, subjectOf } from "../../../shared/store/streams.ts";
import { buildSubject } from "../../../shared/subjects.ts";
import {
  type Actor,
  Command,
  EnvelopeId,
  type Generation,
  MANAGER,
  type Nonce,
  type Owner,
  principalOf,
  type RunId,
  Space,
  type Triple,
  type Uid,
} from "../../../shared/tokens.ts";
import { CONTRACT_ARTIFACTS } from "./contract.ts";
import { post } from "./http.ts";

/** What a client is told before its first login: `GET /.well-known/cotal-mesh` (identity §10). */
export interface Bundle {
  readonly space: string;
  readonly server: string;
  readonly sentinelCreds: string;
  readonly userAuth: { readonly endpoints: { readonly url: string; readonly managerAuthorityUrl: string } };
}

export interface Exchanged {
  readonly token: string;
  readonly owner: Owner;
  readonly exp: number;
}

export interface Wish {
  readonly actor: Actor;
  readonly view?: "manager-caller";
  readonly managerInstanceId?: Uid;
}

/** A connection that the auth callout let in. */
export interface Connected {
  readonly connection: NatsConnection;
  /** Owner, actor and uid that this connection may put on a subject. */
  readonly caller: Triple;
  readonly nonce: Nonce;
}

export class Person {
  readonly bundle: Bundle;
  readonly #idToken: () => Promise<string>;
  readonly #ports: Ports;

  /** `idToken` logs in at the identity provider. */
  constructor(bundle: Bundle, idToken: () => Promise<string>, ports: Ports) {
    this.bundle = bundle;
    this.#idToken = idToken;
    this.#ports = ports;
  }

  idToken(): Promise<string> {
    return this.#idToken();
  }

  /** `POST /exchange`: an identity token becomes a bearer. */
  async exchange(wish: Wish): Promise<Exchanged> {
    return post(`${this.bundle.userAuth.endpoints.url}/exchange`, { idpToken: await this.#idToken(), ...wish });
  }

  /** Sentinel credentials, the bearer beside them, a nonce as the connection's name and inbox. */
  async connect(token: string): Promise<Connected> {
    const { jwt, seed } = parseCreds(this.bundle.sentinelCreds);
    const key = keyPairFromSeed(seed);
    const nonce = newNonce(this.#ports);
    const connection = await connectUser({
      servers: this.bundle.server,
      name: nonce,
      inboxPrefix: `_INBOX_${nonce}`,
      user: () => ({ jwt, key }),
      token,
      reconnect: false,
    });
    const { act } = decodeJwt<{ act: { owner: Owner; actor: Actor; lifecycleUid: Uid } }>(token);
    return { connection, nonce, caller: { owner: act.owner, actor: act.actor, uid: act.lifecycleUid } };
  }

  /** Under view `manager-caller`: the generation that the callout recorded for this connection (state §7). */
  async issuedGeneration({ connection, nonce }: Connected): Promise<Generation> {
    const space = Space.parse(this.bundle.space);
    const { key } = acceptedRows.key({ token: acceptedToken(nonce) });
    const stream = placeOf("accepted", space).name;
    const answer = await connection.request(`$JS.API.DIRECT.GET.${stream}.${subjectOf("accepted", space, key)}`);
    return answer.json<{ ref: { generation: Generation } }>().ref.generation;
  }

  /** Asks a manager instance for a run, as a cast: its subject is what the authority will look for. */
  startRun({ connection, caller, generation }: Caller, instanceId: Uid, runId: RunId): string {
    const [endpoint, command, nonce] = [MANAGER, Command.parse("run-start"), newNonce(this.#ports)];
    const space = Space.parse(this.bundle.space);
    const subject = buildSubject({
      space,
      version: "v1",
      rail: "inst",
      endpoint,
      instanceId,
      command,
      mode: null,
      caller,
      generation,
      nonce,
    });
    const [, runRequest, none] = CONTRACT_ARTIFACTS;
    const request: EndpointRequest = {
      v: 1,
      id: EnvelopeId.parse(nonce),
      op: { endpoint, command, inputDigest: schemaClosure(runRequest), outputDigest: schemaClosure(none) },
      class: "ephemeral",
      replyExpected: false,
      args: { runId },
      from: { id: principalOf(caller.owner, caller.actor), name: "person" },
    };
    connection.publish(subject, JSON.stringify(request));
    return subject;
  }
}

/** A connection that may ask a manager, and the generation its subjects carry. */
export interface Caller extends Connected {
  readonly generation: Generation;
}
