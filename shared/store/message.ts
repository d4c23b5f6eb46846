/** One message of a commit: the bytes of a row and the one expectation under which the broker takes them (state §2). */
import { canonicalBytes } from "../canonical.ts";
import { internal } from "../errors.ts";
import { STORE } from "../limits.ts";
import type { Key } from "../rows/family.ts";
import type { AnyStream } from "./streams.ts";

/** Where a row stood when it was read; revision 0 is absence. */
export interface At<V> {
  readonly key: Key<V>;
  readonly revision: number;
}

export interface Message {
  readonly stream: AnyStream;
  readonly key: string;
  readonly body: Uint8Array;
  /** The row that must still stand at this revision: this one, or the fence. */
  readonly expect: { readonly key: string; readonly revision: number };
  /** Whole seconds the row lives if it is written now. */
  lifetime(now: number): number | undefined;
}

/** Writes a row that must be absent. */
export function create<V>(key: Key<V>, value: V): Message {
  admitted(key, undefined, value);
  return message(key, value, { key: key.key, revision: 0 });
}

/** Replaces a row that must still be as it was read; over one that could not be read, only its revision is known. */
export function swap<V>(at: At<V> & { readonly value?: V }, value: V): Message {
  if (at.value !== undefined) admitted(at.key, at.value, value);
  return message(at.key, value, { key: at.key.key, revision: at.revision });
}

/** Writes a row while another one still is as it was read; revision 0: while that one is absent. */
export function fenced<V, F>(key: Key<V>, value: V, fence: At<F>): Message {
  if (key.stream !== fence.key.stream) throw internal(`the fence of ${key.key} stands in another stream`);
  admitted(key, undefined, value);
  return message(key, value, { key: fence.key.key, revision: fence.revision });
}

/** Moves a row's revision and leaves its bytes, so that whoever read it before loses the fence (state §4). */
export function touch<V>(entry: At<V> & { readonly value: V }): Message {
  return message(entry.key, entry.value, { key: entry.key.key, revision: entry.revision });
}

function message<V>(key: Key<V>, value: V, expect: Message["expect"]): Message {
  return {
    stream: key.stream,
    key: key.key,
    body: canonicalBytes(value),
    expect,
    lifetime: (now) => key.family.lifetime(value, now),
  };
}

function admitted<V>(key: Key<V>, from: V | undefined, to: V): void {
  if (!key.family.admits(from, to)) throw internal(`no such transition of ${key.key}`);
}

/** What the broker would refuse, or take in a way nobody meant, is a fault of ours. Returns the one stream. */
export function streamOf(messages: readonly Message[]): AnyStream {
  const [first] = messages;
  if (!first || messages.length > STORE.maxBatch) throw internal(`a commit of ${messages.length} messages`);
  const written = new Set<string>();
  for (const { stream, key, expect } of messages) {
    if (stream !== first.stream) throw internal(`a commit over two streams, at ${key}`);
    if (written.has(key)) throw internal(`a commit writes ${key} twice`);
    if (expect.key !== key && written.has(expect.key)) throw internal(`a fence on ${expect.key} after it is written`);
    written.add(key);
  }
  return first.stream;
}
