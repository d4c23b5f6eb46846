/** Stops a call of the store half-way, so that a test does something in between; then it goes on as it would have. */
import { vi } from "vitest";
import { Store } from "../../shared/store/store.ts";

export interface Pause {
  /** Resolves once the call has come to where it stops. */
  readonly reached: Promise<void>;
  /** Lets it go on. Other calls are never held. */
  resume(): void;
}

/** The first commit that writes a key with this prefix: before it is sent, or once it is acknowledged. */
export function pauseCommit(prefix: string, where: "before" | "after" = "before"): Pause {
  const { commit } = Store.prototype;
  const { stop, claim, pass } = barrier(() => spy.mockRestore());
  const spy = vi.spyOn(Store.prototype, "commit").mockImplementation(async function (this: Store, messages, work) {
    const first = messages.some(({ key }) => key.startsWith(prefix)) && claim();
    if (first && where === "before") await pass();
    const revisions = await commit.call(this, messages, work);
    if (first && where === "after") await pass();
    return revisions;
  });
  return stop;
}

/** The first commit that writes a key with this prefix throws, before it is sent or once it is acknowledged: a crash. */
export function failCommit(prefix: string, where: "before" | "after" = "before"): void {
  const { commit } = Store.prototype;
  const spy = vi.spyOn(Store.prototype, "commit").mockImplementation(async function (this: Store, messages, work) {
    const first = messages.some(({ key }) => key.startsWith(prefix));
    if (first) spy.mockRestore();
    if (first && where === "before") throw new Crash();
    const revisions = await commit.call(this, messages, work);
    if (first) throw new Crash();
    return revisions;
  });
}

/** What ends a process in a test. */
export class Crash extends Error {}

/** The first read of this key, or the nth from now on, before it is sent. */
export function pauseRead(key: string, nth = 1): Pause {
  const { read } = Store.prototype;
  let reads = 0;
  const { stop, claim, pass } = barrier(() => spy.mockRestore());
  const spy = vi.spyOn(Store.prototype, "read").mockImplementation(async function (this: Store, of, work) {
    if (of.key === key) reads += 1;
    if (reads === nth && of.key === key && claim()) await pass();
    return read.call(this, of, work) as never;
  });
  return stop;
}

function barrier(undo: () => void): { stop: Pause; claim(): boolean; pass(): Promise<void> } {
  const [came, goesOn] = [later(), later()];
  let claimed = false;
  return {
    /** True for the first who asks. */
    claim() {
      const first = !claimed;
      claimed = true;
      return first;
    },
    stop: {
      reached: came.promise,
      resume() {
        undo();
        goesOn.resolve();
      },
    },
    async pass() {
      came.resolve();
      await goesOn.promise;
    },
  };
}

function later(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve: () => resolve() };
}
