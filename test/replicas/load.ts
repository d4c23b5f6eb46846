/** A steady load of requests of several kinds, each sent once, and what became of every one. */
import { systemPorts } from "../../shared/ports.ts";

const ports = systemPorts;

/** ms between the end of one request and the next in its place: a load, not as much as the machine carries. */
const PAUSE_MS = 40;
/** ms after which a place asks again beside what is not answered: people who come later do not wait for a lost one. */
const LOST_MS = 2_000;

export interface Sent<K extends string> {
  readonly kind: K;
  /** Monotonic ms. */
  readonly startedAt: number;
  /** Absent while it is in flight. */
  endedAt?: number;
  /** What it met; absent if it succeeded. */
  failure?: unknown;
}

export class Load<K extends string> {
  readonly sent: Sent<K>[] = [];
  readonly #requests: Readonly<Record<K, () => Promise<void>>>;
  readonly #kinds: readonly K[];
  readonly #places: Promise<void>[];
  #waiting: (() => void)[] = [];
  #stopping = false;

  /** Begins at once, with so many requests of each kind in flight. */
  constructor(requests: Readonly<Record<K, () => Promise<void>>>, atOnce: number) {
    this.#requests = requests;
    this.#kinds = Object.keys(requests) as K[];
    this.#places = this.#kinds.flatMap((kind) => Array.from({ length: atOnce }, () => this.#keepAsking(kind)));
  }

  get failures(): Sent<K>[] {
    return this.sent.filter(({ failure }) => failure !== undefined);
  }

  /** Resolves once so many requests of each kind that were begun after `since` have succeeded. */
  async succeeds(count: number, since = ports.monotonic()): Promise<void> {
    const seen = (kind: K): number =>
      this.sent.filter((one) => one.kind === kind && one.startedAt > since && succeeded(one)).length;
    while (this.#kinds.some((kind) => seen(kind) < count)) await this.#change();
  }

  /** So many more at once of these kinds; resolves as the first of them is answered, while others are on their way. */
  async burst(count: number, kinds: readonly K[]): Promise<void> {
    const all = kinds.flatMap((kind) => Array.from({ length: count }, () => this.#ask(kind)));
    this.#places.push(...all);
    await Promise.race(all);
  }

  /** Begins no more and waits for what is in flight. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#places);
  }

  async #keepAsking(kind: K): Promise<void> {
    const asked: Promise<void>[] = [];
    while (!this.#stopping) {
      const one = this.#ask(kind);
      asked.push(one);
      await Promise.race([one, ports.sleep(LOST_MS)]);
      await ports.sleep(PAUSE_MS);
    }
    await Promise.all(asked);
  }

  async #ask(kind: K): Promise<void> {
    const one: Sent<K> = { kind, startedAt: ports.monotonic() };
    this.sent.push(one);
    try {
      await this.#requests[kind]();
    } catch (error) {
      one.failure = error;
    }
    one.endedAt = ports.monotonic();
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

const succeeded = ({ endedAt, failure }: Sent<string>): boolean => endedAt !== undefined && failure === undefined;
