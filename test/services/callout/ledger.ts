/** Rows in memory, as far as a connect reads and writes them: the broker's rules are the store's to test. */
import { internal, unavailable } from "../../../shared/errors.ts";
import type { Entry, Key } from "../../../shared/rows/family.ts";
import type { Message } from "../../../shared/store/message.ts";
import type { Store } from "../../../shared/store/store.ts";
import { CommitLost } from "../../../shared/store/write.ts";

interface Stored {
  readonly body: Uint8Array;
  readonly revision: number;
}

export class Ledger implements Pick<Store, "read" | "nextRow" | "commit"> {
  readonly #rows = new Map<string, Stored>();
  #revision = 0;
  /** Keys written by `commit`, in order. */
  readonly written: string[] = [];
  /** Keys read, in order. */
  readonly reads: string[] = [];
  /** Runs before a commit is applied. */
  beforeCommit: (messages: readonly Message[]) => void | Promise<void> = () => {};
  /** Streams that cannot be read or written. */
  readonly dead = new Set<string>();

  put<V>(key: Key<V>, value: V): number {
    const body = Buffer.from(JSON.stringify(value));
    if (key.family.decode(key.key, body) === undefined) throw new Error(`no row of its family: ${key.key}`);
    this.#revision += 1;
    this.#rows.set(id(key), { body, revision: this.#revision });
    return this.#revision;
  }

  remove(key: Pick<Key<unknown>, "stream" | "key">): void {
    this.#rows.delete(id(key));
  }

  /** Stores what is no row. */
  garble(key: Pick<Key<unknown>, "stream" | "key">): void {
    this.#revision += 1;
    this.#rows.set(id(key), { body: Buffer.from("{"), revision: this.#revision });
  }

  peek<V>(key: Key<V>): V | undefined {
    const stored = this.#rows.get(id(key));
    return stored && key.family.decode(key.key, stored.body);
  }

  async read<V>(key: Key<V>): Promise<Entry<V> | undefined> {
    this.reads.push(key.key);
    if (this.dead.has(key.stream)) throw unavailable(`reading ${key.stream}`);
    const stored = this.#rows.get(id(key));
    if (!stored) return undefined;
    const value = key.family.decode(key.key, stored.body);
    if (value === undefined) throw key.family.refusal(key.key, "garbled");
    return { key, value, revision: stored.revision };
  }

  nextRow<V>(key: Key<V>): Promise<Entry<V> | undefined> {
    return this.read(key);
  }

  async commit(messages: readonly Message[]): Promise<number[]> {
    await this.beforeCommit(messages);
    const [message] = messages;
    if (!message || messages.length > 1) throw internal("a connect writes single rows");
    if (this.dead.has(message.stream)) throw unavailable(`writing ${message.stream}`);
    const { stream, key, body, expect } = message;
    const standing = this.#rows.get(id({ stream, key: expect.key }))?.revision ?? 0;
    if (standing !== expect.revision) throw new CommitLost([expect.key]);
    this.#revision += 1;
    this.#rows.set(id({ stream, key }), { body, revision: this.#revision });
    this.written.push(key);
    return [this.#revision];
  }
}

const id = ({ stream, key }: { readonly stream: string; readonly key: string }): string => `${stream} ${key}`;
