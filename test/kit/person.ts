/** Somebody who logs in, holds an actor, and connects through the callout with what the exchange gives. */
import type { NatsConnection } from "@nats-io/transport-node";
import { AuthorityClient, type CallOptions } from "../../shared/client.ts";
import { actorGrant } from "../../shared/contracts/auth/actors/actor-grant.ts";
import { exchangeUser } from "../../shared/contracts/exchange/exchange-user.ts";
import type { Input, Operation, Output } from "../../shared/contracts/operation.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { acceptedToken } from "../../shared/issued.ts";
import { newNonce, systemPorts } from "../../shared/ports.ts";
import { acceptedRows } from "../../shared/rows/accepted.ts";
import { type Actor as ActorRow, actorRows } from "../../shared/rows/actor.ts";
import type { Entry } from "../../shared/rows/family.ts";
import { buildSubject, type RequestSubject } from "../../shared/subjects.ts";
import {
  Actor,
  type Command,
  type EndpointLabel,
  type Generation,
  type Nonce,
  principalOf,
  type Triple,
  type Uid,
} from "../../shared/tokens.ts";
import { login, ownerOf } from "./logins.ts";
import type { ManagerContract } from "./manager-contract.ts";
import type { TestSpace } from "./space.ts";

const ports = systemPorts;

export interface PersonOptions {
  readonly actor?: string;
  readonly scope?: readonly string[];
  readonly allowSubscribe?: readonly string[];
  readonly allowPublish?: readonly string[];
  readonly role?: string;
}

/** One of a person's connections. */
export interface Connected {
  readonly connection: NatsConnection;
  readonly nonce: Nonce;
  /** Asks under the person's own triple. */
  readonly client: AuthorityClient;
}

/** A connection with the view `manager-caller`, for one manager instance. */
export interface ManagerCaller extends Connected {
  readonly generation: Generation;
  /** The subject of a request to the manager, under a fresh nonce unless `more` names one. */
  subject(command: string, more?: Partial<RequestSubject>): string;
  /** Publishes a request as the mesh's clients do, without waiting for the manager; gives its subject. */
  request(command: "run-start" | "run-resume" | "run-answer", args: object, more?: Asking): Promise<string>;
}

export interface Asking {
  readonly subject?: Partial<RequestSubject>;
  /** Over the envelope's members. */
  readonly envelope?: object;
}

export interface Person extends Triple {
  readonly name: string;
  readonly row: () => Promise<Entry<ActorRow> | undefined>;
  /** A fresh proof of login. */
  idToken(): string;
  /** Asks as through the loopback gateway. Never repeats by itself. */
  ask<O extends Operation>(operation: O, args: Input<O>, options?: CallOptions): Promise<Output<O>>;
  bearer(args?: Partial<Input<typeof exchangeUser>>): Promise<string>;
  /** Through the callout. */
  connect(args?: Partial<Input<typeof exchangeUser>>): Promise<Connected>;
  /** Through the callout, with this bearer; the first loss ends it. */
  connectWith(token: string): Promise<Connected>;
  callerOf(manager: { readonly instanceId: Uid; readonly contract: ManagerContract }): Promise<ManagerCaller>;
}

/** Has the operator grant the actor; what is granted already must be the same. */
export async function grantPerson(space: TestSpace, name: string, options: PersonOptions = {}): Promise<Person> {
  const { actor = "cli", scope = [], allowSubscribe = [], allowPublish = [], role } = options;
  const owner = await ownerOf(space, name);
  const args = {
    requestId: newNonce(ports),
    owner,
    actor,
    scope: [...scope],
    allowSubscribe: [...allowSubscribe],
    allowPublish: [...allowPublish],
    ...(role === undefined ? {} : { role }),
  };
  const granted = await space.operator.call<Operation>(actorGrant, args);
  const { lifecycleUid: uid } = granted as Output<typeof actorGrant>;
  return personOf(space, name, { owner, actor: Actor.parse(actor), uid });
}

function personOf(space: TestSpace, name: string, triple: Triple): Person {
  const { owner, actor } = triple;
  const enter = async (token: string, reconnect: boolean): Promise<Connected> => {
    const nonce = newNonce(ports);
    const sentinel = await space.files.sentinel();
    const user = { jwt: sentinel.jwt, key: keyPairFromSeed(sentinel.seed) };
    const inboxPrefix = `_INBOX_${nonce}`;
    const connection = await space.enter(nonce, user, { inboxPrefix, token, reconnect });
    const client = new AuthorityClient({ connection, space: space.space, caller: triple, inboxPrefix, name, ports });
    return { connection, nonce, client };
  };
  const person: Person = {
    ...triple,
    name,
    row: () => space.store.read(actorRows.key({ owner, actor })),
    idToken: () => login(name),
    ask: (operation, args, options) =>
      space.gateway.call(operation, args, { auth: login(name), once: true, ...options }),
    async bearer(args = {}) {
      const { token } = await space.gateway.call(exchangeUser, { actor, ...args }, { auth: login(name) });
      return token;
    },
    connect: async (args) => enter(await person.bearer(args), true),
    connectWith: (token) => enter(token, false),
    callerOf: async ({ instanceId, contract }) => {
      const connected = await person.connect({ view: "manager-caller", managerInstanceId: instanceId });
      return callerOf(space, triple, instanceId, contract, connected);
    },
  };
  return person;
}

async function callerOf(
  space: TestSpace,
  caller: Triple,
  instanceId: Uid,
  contract: ManagerContract,
  connected: Connected,
): Promise<ManagerCaller> {
  const accepted = await space.store.read(acceptedRows.key({ token: acceptedToken(connected.nonce) }));
  if (!accepted) throw new Error("nothing was accepted for this connection");
  const { generation } = accepted.value.ref;
  const subject = (command: string, more: Partial<RequestSubject> = {}): string =>
    buildSubject({
      space: space.space,
      version: "v1",
      rail: "inst",
      endpoint: "manager" as string as EndpointLabel,
      instanceId,
      command: command as Command,
      mode: command === "run-answer" ? "self" : null,
      caller,
      generation,
      nonce: newNonce(ports),
      ...more,
    });
  return {
    ...connected,
    generation,
    subject,
    async request(command, args, more = {}) {
      const to = subject(command, more.subject);
      const { inputDigest, outputDigest } = contract.pair(command);
      const envelope = {
        v: 1,
        id: newNonce(ports),
        op: { endpoint: "manager", command, inputDigest, outputDigest },
        class: "ephemeral",
        replyExpected: true,
        args,
        from: { id: principalOf(caller.owner, caller.actor), name: "test" },
        deadlineMs: 5_000,
        ...more.envelope,
      };
      connected.connection.publish(to, JSON.stringify(envelope), { reply: `_INBOX_${connected.nonce}.x` });
      await connected.connection.flush();
      return to;
    },
  };
}
