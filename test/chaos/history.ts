/**
 * Every commit of the authority's stream in order, as the broker acknowledged it, though the stream itself keeps only
 * the last message of a row: what an ending state cannot show, that nothing was done twice and nothing in between was
 * wrong, is read from here (state §4, §8).
 */
import type { Msg, MsgHdrs, NatsConnection } from "@nats-io/nats-core";
import { expect, vi } from "vitest";
import { loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { placeOf } from "../../shared/store/streams.ts";
import { everythingUser } from "../kit/ground.ts";
import type { TestSpace } from "../kit/space.ts";

export interface Written {
  readonly seq: number;
  readonly key: string;
  readonly body: string;
  readonly headers: MsgHdrs | undefined;
}

interface Sent {
  readonly key: string;
  readonly body: string;
  readonly headers: MsgHdrs | undefined;
}

interface Ack {
  readonly stream?: string;
  readonly seq?: number;
  readonly count?: number;
  readonly error?: object;
}

export class History {
  readonly #store: TestSpace["store"];
  readonly #prefix: string;
  readonly #stream: string;
  readonly #batches = new Map<string, Sent[]>();
  /** By the subject on which the broker answers. */
  readonly #sent = new Map<string, Sent[]>();
  /** On a cluster an answer may arrive before what it is of. */
  readonly #early = new Map<string, Ack>();
  readonly #commits = new Map<number, readonly Written[]>();

  private constructor({ store, space }: TestSpace) {
    this.#store = store;
    const { name, prefix } = placeOf("auth", space);
    this.#stream = name;
    this.#prefix = prefix;
  }

  /** Before the first row is written. Hears everything in the authority's account. */
  static async of(space: TestSpace): Promise<History> {
    const { authorityAccount } = await loadSecret(space.secrets, space.space, SECRET.serviceKeys);
    const connection: NatsConnection = await space.enter("history", everythingUser(authorityAccount));
    const history = new History(space);
    connection.subscribe(">", { callback: (_error, message) => history.#heard(message) });
    await connection.flush();
    return history;
  }

  /** By sequence. Rejects where a message of the stream is of no commit that was heard. */
  async commits(): Promise<readonly (readonly Written[])[]> {
    const last = (await this.#store.lastSeq("auth")) ?? 0;
    const unanswered = [...this.#sent.values()];
    const all: (readonly Written[])[] = [];
    const lasts = new Map<string, number>();
    for (let first = 1; first <= last; first += all.at(-1)?.length ?? 1) {
      const known = this.#commits.get(first) ?? (await this.#answer(first));
      const commit = known ?? written(first, this.#lost(unanswered, first, this.#next(first, last), lasts));
      for (const { key, seq } of commit) lasts.set(key, seq);
      all.push(commit);
    }
    return all;
  }

  /** The answer to what was stored there, which may still be on its way. */
  async #answer(first: number): Promise<readonly Written[] | undefined> {
    const heard = () => expect([...this.#commits.keys()].some((seq) => seq >= first)).toBe(true);
    await vi.waitFor(heard, { timeout: 2_000, interval: 10 }).catch(() => {});
    return this.#commits.get(first);
  }

  #next(first: number, last: number): number {
    return Math.min(last + 1, ...[...this.#commits.keys()].filter((seq) => seq > first));
  }

  /**
   * A stream that changes its leader stores what it does not answer: the earliest such commit that fits before the next
   * and expects the rows as they stood.
   */
  #lost(unanswered: Sent[][], first: number, next: number, lasts: ReadonlyMap<string, number>): readonly Sent[] {
    const stood = ({ key, headers }: Sent): boolean => {
      const subject = headers?.get("Nats-Expected-Last-Subject-Sequence-Subject") || this.#prefix + key;
      const expected = Number(headers?.get("Nats-Expected-Last-Subject-Sequence"));
      return (lasts.get(subject.slice(this.#prefix.length)) ?? 0) === expected;
    };
    const at = unanswered.findIndex((sent) => first + sent.length <= next && sent.every(stood));
    const [sent] = at < 0 ? [] : unanswered.splice(at, 1);
    if (!sent) throw new Error(`nobody was heard writing message ${first}`);
    return sent;
  }

  #heard(message: Msg): void {
    const { subject, reply, headers } = message;
    if (!subject.startsWith(this.#prefix)) {
      this.#answered(message);
      return;
    }
    const sent = { key: subject.slice(this.#prefix.length), body: message.string(), headers };
    const batch = headers?.get("Nats-Batch-Id");
    const all = [...((batch && this.#batches.get(batch)) || []), sent];
    if (batch && !headers?.get("Nats-Batch-Commit")) {
      this.#batches.set(batch, all);
      return;
    }
    if (batch) this.#batches.delete(batch);
    if (!reply) return;
    this.#sent.set(reply, all);
    const early = this.#early.get(reply);
    if (early) this.#settle(reply, early);
  }

  #answered({ subject, headers, data }: Msg): void {
    if (headers || data.length > 1_024) return;
    const text = new TextDecoder().decode(data);
    if (!text.includes(`"stream":"${this.#stream}"`) && !text.includes('"err_code"')) return;
    this.#settle(subject, JSON.parse(text) as Ack);
  }

  #settle(reply: string, ack: Ack): void {
    const sent = this.#sent.get(reply);
    if (!sent) {
      this.#early.set(reply, ack);
      return;
    }
    this.#sent.delete(reply);
    this.#early.delete(reply);
    const { seq, error } = ack;
    if (error || seq === undefined) return;
    const first = seq - sent.length + 1;
    this.#commits.set(first, written(first, sent));
  }
}

const written = (first: number, sent: readonly Sent[]): readonly Written[] =>
  sent.map((message, at) => ({ ...message, seq: first + at }));
