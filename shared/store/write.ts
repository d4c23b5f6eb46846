/** Sends a commit and says what became of it: the one place that reads the broker's refusals of writes (state §2). */
import { headers, type MsgHdrs, type NatsConnection } from "@nats-io/nats-core";
import { AuthorityError, internal, isAuthorityError, unavailable } from "../errors.ts";
import { STORE, STORE_RETRY } from "../limits.ts";
import { request } from "../nats/requests.ts";
import { jitter, newUid, type Ports } from "../ports.ts";
import type { Space } from "../tokens.ts";
import { assertInTime, timeLeft, type Work } from "../work.ts";
import { type ApiError, BROKER, describe, faultOf, isNoAnswer, isRefusedHere } from "./api.ts";
import { type Message, streamOf } from "./message.ts";
import { KeyedQueue, Places } from "./queue.ts";
import { type AnyStream, isWriteOnce, subjectOf } from "./streams.ts";

/** A lost commit: `conflict`, and which expected rows had moved. */
export class CommitLost extends AuthorityError {
  readonly keys: readonly string[];

  constructor(keys: readonly string[]) {
    const reason = `moved: ${keys.join(", ")}`;
    super("conflict", "the state changed meanwhile, ask again", { reason, outcome: "not-executed" });
    this.keys = keys;
  }
}

/** Whether a commit was lost on that row; without `key`, on any. */
export const lostOn = (error: unknown, key?: { readonly key: string }): error is CommitLost =>
  error instanceof CommitLost && (key === undefined || error.keys.includes(key.key));

/** A row as it is stored, unparsed. */
export interface Stored {
  readonly revision: number;
  readonly body: Uint8Array;
}

/** What writing needs of the store. */
export interface Writer {
  readonly space: Space;
  readonly ports: Ports;
  connection(stream: AnyStream): NatsConnection;
  /** The last message of a row, from the leader. */
  stored(stream: AnyStream, key: string, work: Work): Promise<Stored | undefined>;
}

type Answer =
  | { readonly kind: "revisions"; readonly revisions: number[] }
  | { readonly kind: "refused"; readonly error: ApiError }
  | { readonly kind: "silence"; readonly reason: string }
  | { readonly kind: "unsent"; readonly reason: string; readonly cause: unknown };

/** How one refusal reads: try again, it had landed after all, rows had moved, or it is final. */
type Verdict =
  | { readonly kind: "retry" }
  | { readonly kind: "landed"; readonly revisions: number[] }
  | { readonly kind: "moved"; readonly keys: string[] }
  | { readonly kind: "final"; readonly error: AuthorityError };

const RETRY: Verdict = { kind: "retry" };

export class Commits {
  readonly #writer: Writer;
  readonly #queue = new KeyedQueue();
  readonly #batches = new Places(STORE.batchesInFlight);

  constructor(writer: Writer) {
    this.#writer = writer;
  }

  /** The revisions of the messages, in order. Throws `CommitLost`, `unavailable`, `deadline-exceeded` or `internal`. */
  async commit(messages: readonly Message[], work: Work): Promise<number[]> {
    const stream = streamOf(messages);
    // Writes in flight that are fenced on one row refuse one another on a cluster (pitfalls 13).
    const rows = messages.filter(({ expect }) => expect.revision > 0).map(({ expect }) => `${stream} ${expect.key}`);
    const settle = () => work.effects.during(this.#settle(stream, messages, work));
    return this.#queue.run(rows, () => (messages.length === 1 ? settle() : this.#batches.run(settle)));
  }

  async #settle(stream: AnyStream, messages: readonly Message[], work: Work): Promise<number[]> {
    assertInTime(work, this.#writer.ports);
    let silent = false;
    let last = "";
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#send(stream, messages, work);
      if (answer.kind === "revisions") return acknowledged(answer.revisions, work);
      if (answer.kind === "unsent" && !silent) throw unavailable(answer.reason, answer.cause, "not-executed");
      if (answer.kind === "refused") {
        last = describe(answer.error);
        const verdict = await this.#read(stream, messages, answer.error, silent, work);
        if (verdict.kind === "landed") return acknowledged(verdict.revisions, work);
        if (verdict.kind === "moved" && !silent) throw new CommitLost(verdict.keys);
        if (verdict.kind === "final" && !silent) throw verdict.error;
        // What was sent before may have landed and been overwritten since: nobody can tell.
        if (verdict.kind !== "retry") throw unsettled(last, work);
      } else {
        silent = true;
        last = answer.reason;
      }
      if (!silent && tries > STORE_RETRY.tries) throw unavailable(`refused: ${last}`, undefined, "not-executed");
      if (!(await this.#pause(tries, work))) {
        if (silent) throw unsettled(last, work);
        throw unavailable(`refused until the deadline: ${last}`, undefined, "not-executed");
      }
    }
  }

  /** Waits before the next try; false once there is no time for one. */
  async #pause(tries: number, work: Work): Promise<boolean> {
    const { ports } = this.#writer;
    const ms = jitter(ports, STORE_RETRY, tries - 1);
    // A try whose answer cannot be waited for would only make a definite refusal an unknown one.
    if (ms + STORE.writeLeastMs >= timeLeft(work, ports)) return false;
    await ports.sleep(ms, work.signal).catch(() => undefined);
    return !work.signal?.aborted;
  }

  async #read(
    stream: AnyStream,
    messages: readonly Message[],
    error: ApiError,
    silent: boolean,
    work: Work,
  ): Promise<Verdict> {
    switch (error.err_code) {
      case BROKER.incompleteBatch:
      case BROKER.tooManyBatches:
        return RETRY;
      case BROKER.wrongLastSequence:
      case BROKER.wrongLastSequenceConstant:
      case BROKER.storeFailed:
        break;
      default:
        return { kind: "final", error: unavailable(`refused: ${describe(error)}`, undefined, "not-executed") };
    }
    const taken = error.err_code === BROKER.storeFailed && isWriteOnce(stream);
    const keys = messages.flatMap(({ key, expect }) => (silent || taken ? [key, expect.key] : [expect.key]));
    const rows = await this.#rows(stream, keys, work);
    if (rows === undefined) return RETRY;
    const landed = silent ? landedAs(messages, rows) : undefined;
    if (landed) return { kind: "landed", revisions: landed };
    const moved = messages.flatMap(({ key, expect }) => [
      ...((rows.get(expect.key)?.revision ?? 0) === expect.revision ? [] : [expect.key]),
      ...(taken && rows.get(key) ? [key] : []),
    ]);
    if (moved.length > 0) return { kind: "moved", keys: [...new Set(moved)] };
    if (error.err_code !== BROKER.storeFailed) return RETRY;
    // Taken and free subjects are refused alike; free, it was the disk.
    return { kind: "final", error: unavailable(`not stored: ${describe(error)}`, undefined, "not-executed") };
  }

  /** The rows as they are now, or nothing where one cannot be read. */
  async #rows(
    stream: AnyStream,
    keys: readonly string[],
    work: Work,
  ): Promise<Map<string, Stored | undefined> | undefined> {
    const once = [...new Set(keys)];
    try {
      const rows = await Promise.all(once.map((key) => this.#writer.stored(stream, key, work)));
      return new Map(once.map((key, index) => [key, rows[index]]));
    } catch (error) {
      if (isAuthorityError(error, "unavailable")) return undefined;
      throw error;
    }
  }

  async #send(stream: AnyStream, messages: readonly Message[], work: Work): Promise<Answer> {
    const { space, ports } = this.#writer;
    // A new batch each time: the broker may still hold the beginning of the former one.
    const batch = messages.length > 1 ? newUid(ports) : undefined;
    const timeoutMs = Math.max(1, Math.min(STORE.writeAttemptMs, timeLeft(work, ports)));
    try {
      const connection = this.#writer.connection(stream);
      const now = ports.now();
      const wire = messages.map((message, index) => ({
        subject: subjectOf(stream, space, message.key),
        body: message.body,
        headers: headersOf(message, subjectOf(stream, space, message.expect.key), now, batch, index, messages.length),
      }));
      const commit = wire.pop();
      if (!commit) throw internal("an empty commit");
      for (const part of wire) connection.publish(part.subject, part.body, { headers: part.headers });
      const reply = await request(connection, commit.subject, commit.body, { headers: commit.headers, timeoutMs });
      return answerOf(reply.json(), messages.length);
    } catch (error) {
      if (isAuthorityError(error, "internal")) throw error;
      if (error instanceof AuthorityError || isRefusedHere(error)) {
        return { kind: "unsent", reason: faultOf(error), cause: error };
      }
      return { kind: "silence", reason: faultOf(error) };
    }
  }
}

function acknowledged(revisions: number[], work: Work): number[] {
  work.effects.acked();
  return revisions;
}

function unsettled(last: string, work: Work): AuthorityError {
  work.effects.unsettled();
  return unavailable(`a write without a definite answer: ${last}`, undefined, "unknown");
}

function headersOf(
  message: Message,
  expectedSubject: string,
  now: number,
  batch: string | undefined,
  index: number,
  length: number,
): MsgHdrs {
  const all = headers();
  all.set("Nats-Expected-Last-Subject-Sequence", String(message.expect.revision));
  if (message.expect.key !== message.key) {
    all.set("Nats-Expected-Last-Subject-Sequence-Subject", expectedSubject);
  }
  const lifetime = message.lifetime(now);
  if (lifetime !== undefined) all.set("Nats-TTL", `${lifetime}s`);
  if (batch !== undefined) {
    all.set("Nats-Batch-Id", batch);
    all.set("Nats-Batch-Sequence", String(index + 1));
    if (index === length - 1) all.set("Nats-Batch-Commit", "1");
  }
  return all;
}

interface Ack {
  readonly seq?: number;
  readonly count?: number;
  readonly error?: ApiError;
}

/** Sequences of a batch are consecutive and the acknowledgement has the last (state §2). */
function answerOf(ack: Ack, length: number): Answer {
  if (ack.error) {
    return isNoAnswer(ack.error)
      ? { kind: "silence", reason: describe(ack.error) }
      : { kind: "refused", error: ack.error };
  }
  const { seq, count = 1 } = ack;
  if (seq === undefined || count !== length) return { kind: "silence", reason: "an acknowledgement of something else" };
  return { kind: "revisions", revisions: Array.from({ length }, (_, index) => seq - length + index + 1) };
}

/** The revisions under which these very messages are stored, if all of them are, as one commit stores them. */
function landedAs(messages: readonly Message[], rows: ReadonlyMap<string, Stored | undefined>): number[] | undefined {
  const found = messages.map(({ key, body }) => {
    const row = rows.get(key);
    return row && Buffer.compare(row.body, body) === 0 ? row.revision : undefined;
  });
  const [first] = found;
  if (first === undefined) return undefined;
  const revisions = messages.map((_, index) => first + index);
  const asOne = found.every((revision, index) => revision === revisions[index]);
  const after = messages.every(({ expect }, index) => (found[index] ?? 0) > expect.revision);
  return asOne && after ? revisions : undefined;
}
