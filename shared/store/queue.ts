/** Turns for work inside the process: writes that share a fence row, and batches in flight (state §2). */

/** Runs work one at a time per key, in order of arrival; work of several keys waits for all of them. */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<void>>();

  async run<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    const before = [...new Set(keys)].flatMap((key) => this.#tails.get(key) ?? []);
    const { promise: done, resolve } = withResolver();
    for (const key of keys) this.#tails.set(key, done);
    try {
      await Promise.all(before);
      return await work();
    } finally {
      resolve();
      for (const key of keys) if (this.#tails.get(key) === done) this.#tails.delete(key);
    }
  }
}

/** At most so many at once, in order of arrival. */
export class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}

function withResolver(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
