/**
 * Calls an operation by its declaration, over NATS request/reply.
 *
 * ```ts
 * const client = new AuthorityClient({ connection, space, caller, name: "my-manager", ports: systemPorts });
 * const { actors } = await client.call(actorList, { requestId: newNonce(ports) });
 * ```
 *
 * Each call takes a fresh reply subject, since the broker refuses both answers to two outstanding requests with one. A
 * refusal is thrown as the `AuthorityError` that the service named; silence is `unavailable` with outcome
 * `unknown`. Only what changes nothing, or certainly did not happen, is repeated, inside the deadline (wire §4).
 */
import { errors, type Msg, type NatsConnection, NoRespondersError } from "@nats-io/nats-core";
import type { Json } from "./canonical.ts";
import { type Input, type Operation, type Output, schemaClosure } from "./contracts/operation.ts";
import { type EndpointRequest, type ParsedReply, parseReply } from "./envelope.ts";
import { AuthorityError, type ErrorDetail, isAuthorityError, isErrorCode, textOf } from "./errors.ts";
import { request } from "./nats/requests.ts";
import { newNonce, type Ports } from "./ports.ts";
import { type Asking, repeating } from "./repeat.ts";
import { isRefusedHere } from "./store/api.ts";
import { buildSubject, type SubjectTarget } from "./subjects.ts";
import type { Command, EndpointLabel, Space, Triple, Uid } from "./tokens.ts";
import { principalOf } from "./tokens.ts";

export interface ClientOptions {
  /** Or how to get the one of now, where it is replaced in the course of time. */
  readonly connection: NatsConnection | (() => NatsConnection);
  readonly space: Space;
  /** The triple that this connection may publish. */
  readonly caller: Triple;
  /** Where this connection may receive: `_INBOX_<nkey>` or `_INBOX_<nonce>`. */
  readonly inboxPrefix: string;
  /** Display name in the envelope, 1 to 64 characters. */
  readonly name: string;
  readonly ports: Ports;
}

export interface CallOptions extends Asking {
  /** An identity provider's token; only a gateway's is honoured. */
  readonly auth?: string;
  /** The incarnation that must answer. */
  readonly bind?: { readonly instanceId: Uid; readonly epoch: number };
  /** For operations with mode `exact`. */
  readonly target?: Required<SubjectTarget>;
  readonly correlation?: EndpointRequest["correlation"];
}

type Digests = { inputDigest: ReturnType<typeof schemaClosure>; outputDigest: ReturnType<typeof schemaClosure> };
const digests = new WeakMap<Operation, Digests>();

function digestsOf(operation: Operation): Digests {
  let pair = digests.get(operation);
  if (!pair) {
    pair = { inputDigest: schemaClosure(operation.input), outputDigest: schemaClosure(operation.output) };
    digests.set(operation, pair);
  }
  return pair;
}

export class AuthorityClient {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** The operation's answer, or a thrown `AuthorityError` with its code, details and outcome. */
  async call<O extends Operation>(operation: O, args: Input<O>, options: CallOptions = {}): Promise<Output<O>> {
    return (await repeating(operation, this.#options.ports, options, (leftMs) =>
      this.#once(operation, args, options, leftMs),
    )) as Output<O>;
  }

  async #once(operation: Operation, args: unknown, options: CallOptions, deadlineMs: number): Promise<Json> {
    const { connection, space, caller, name, inboxPrefix, ports } = this.#options;
    const id = newNonce(ports);
    const { target } = options;
    const subject = buildSubject({
      space,
      version: "legacy",
      rail: "one",
      endpoint: operation.service as string as EndpointLabel,
      command: operation.name as Command,
      mode: target ? "exact" : null,
      ...(target ? { target } : {}),
      caller,
      nonce: newNonce(ports),
    });
    const envelope: EndpointRequest = {
      v: 1,
      id: id as string as EndpointRequest["id"],
      op: {
        endpoint: operation.service as string as EndpointLabel,
        command: operation.name as Command,
        ...(operation.name === "describe" ? {} : digestsOf(operation)),
      },
      class: "ephemeral",
      replyExpected: true,
      ...(target ? { target: { owner: target.owner, actor: target.actor, lifecycleUid: target.uid } } : {}),
      ...(options.bind ? { bind: options.bind } : {}),
      ...(args === null || args === undefined ? {} : { args }),
      from: { id: principalOf(caller.owner, caller.actor), name },
      deadlineMs,
      ...(options.correlation ? { correlation: options.correlation } : {}),
      ...(options.auth === undefined ? {} : { auth: options.auth }),
    };
    const current = typeof connection === "function" ? connection() : connection;
    const message = await exchange(current, subject, JSON.stringify(envelope), { timeoutMs: deadlineMs, inboxPrefix });
    return read(message, id);
  }
}

async function exchange(...asking: Parameters<typeof request>): Promise<Msg> {
  try {
    return await request(...asking);
  } catch (error) {
    if (error instanceof NoRespondersError) {
      throw new AuthorityError("unavailable", "nobody serves this operation", { outcome: "not-executed" });
    }
    const outcome = isRefusedHere(error) ? "not-executed" : "unknown";
    throw new AuthorityError("unavailable", "no answer in time", { outcome, reason: textOf(error), cause: error });
  }
}

/** Whether nobody said anything until the deadline. By no clock: a timer may fire a moment before its time. */
export const isSilence = (error: unknown): error is AuthorityError =>
  isAuthorityError(error, "unavailable") && error.cause instanceof errors.TimeoutError;

function read(message: Msg, id: string): Json {
  const reply: ParsedReply | undefined = parseReply(message.data);
  if (!reply || (reply.id !== id && (reply.ok || reply.id !== "-"))) {
    throw new AuthorityError("unavailable", "the answer could not be read", { outcome: "unknown" });
  }
  if (reply.ok) return reply.data;
  const { code, message: text, outcome, details } = reply.error;
  throw new AuthorityError(isErrorCode(code) ? code : "internal", text, {
    details: details as readonly unknown[] as readonly ErrorDetail[],
    outcome,
  });
}
