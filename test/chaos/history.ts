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
import { PATIENCE } from "./space.ts";

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

  /** By sequence. Rejects where one message of the stream has no commit. */
  async commits(): Promise<readonly (readonly Written[])[]> {
    const last = await this.#store.lastSeq("auth");
    const messages = () => [...this.#commits.values()].reduce((sum, { length }) => sum + length, 0);
    await vi.waitFor(() => expect(messages()).toBeGreaterThanOrEqual(last ?? 0), PATIENCE);
    const all = [...this.#commits].sort(([one], [other]) => one - other).map(([, commit]) => commit);
    const gap = all.flat().findIndex(({ seq }, at) => seq !== at + 1);
    if (gap >= 0) throw new Error(`nobody was seen writing message ${gap + 1}`);
    return all;
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
      if (ack.seq !== undefined) this.#early.set(reply, ack);
      return;
    }
    this.#sent.delete(reply);
    const { seq, error } = ack;
    if (error || seq === undefined) return;
    const first = seq - sent.length + 1;
    this.#commits.set(
      first,
      sent.map((message, at) => ({ ...message, seq: first + at })),
    );
  }
}
