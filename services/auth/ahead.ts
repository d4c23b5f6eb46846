/** Steps begun before their turn, so that answers of leaders are on their way at once. */
import type { Entry, Key } from "../../shared/rows/family.ts";
import type { Reader } from "../../shared/store/store.ts";
import type { Work } from "../../shared/work.ts";

/** A step begun before those that come first have ended: its refusal waits until it is awaited in its turn. */
export function ahead<T>(begun: Promise<T>): Promise<T> {
  begun.catch(() => {});
  return begun;
}

/** Reads as the given one does, and has already begun with the row that will most likely be asked for. */
export function begunWith<V>(reader: Reader, likely: Key<V>, work: Work): Reader {
  const begun = ahead(reader.read(likely, work));
  return {
    read: <R>(key: Key<R>, of?: Work) =>
      key.stream === likely.stream && key.key === likely.key
        ? (begun as Promise<unknown> as Promise<Entry<R> | undefined>)
        : reader.read(key, of),
  };
}
