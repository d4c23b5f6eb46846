/** Merges who waits: one round runs, and what arrives meanwhile shares the next (lifecycles §2). */
import { AuthorityError, internal } from "../../shared/errors.ts";
import type { Ports } from "../../shared/ports.ts";
import { assertInTime, type Work } from "../../shared/work.ts";

/** A request that waits for a round, or is in one. */
export interface Member<A> {
  readonly ask: A;
  readonly work: Work;
  /** Monotonic ms. */
  readonly arrivedAt: number;
  /** Neither answered, nor past its deadline, nor given up. */
  readonly open: boolean;
}

export interface RoundsOptions<A> {
  readonly ports: Ports;
  /** Of all members of one round together. */
  readonly maxTargets: number;
  /** Answers the members; those it leaves, because their time ran out, are refused. */
  readonly run: (members: readonly Member<A>[]) => Promise<void>;
}

export class Rounds<A> {
  readonly #options: RoundsOptions<A>;
  #next: Waiting<A>[] = [];
  #running = false;

  constructor(options: RoundsOptions<A>) {
    this.#options = options;
  }

  /** Throws `resource-exhausted` where so many targets do not fit into the next round. */
  assertRoom(targets: number): void {
    this.#next = this.#next.filter((waiting) => waiting.stillWaits());
    const taken = this.#next.reduce((sum, waiting) => sum + waiting.targets, 0);
    if (taken + targets > this.#options.maxTargets) {
      throw new AuthorityError("resource-exhausted", "too many targets are waiting, ask again");
    }
  }

  /** Waits for the next round; `ask` is given what answers it. */
  join<R>(targets: number, work: Work, ask: (answer: (result: R) => void) => A): Promise<R> {
    const { ports } = this.#options;
    this.assertRoom(targets);
    return new Promise<R>((resolve, reject) => {
      this.#next.push(
        new Waiting(ports, targets, work, (done) => ask((result) => done(() => resolve(result))), reject),
      );
      if (!this.#running) void this.#runAll();
    });
  }

  async #runAll(): Promise<void> {
    this.#running = true;
    await Promise.resolve(); // what arrives in one go is one round
    while (this.#next.length > 0) {
      const members = this.#next.filter((waiting) => waiting.stillWaits());
      this.#next = [];
      if (members.length > 0) await this.#runOne(members);
    }
    this.#running = false;
  }

  async #runOne(members: readonly Waiting<A>[]): Promise<void> {
    let failure: unknown = internal("a round left a request in time unanswered");
    try {
      await this.#options.run(members);
    } catch (error) {
      failure = error;
    }
    for (const member of members) if (member.stillWaits()) member.refuse(failure);
  }
}

class Waiting<A> implements Member<A> {
  readonly ask: A;
  readonly work: Work;
  readonly targets: number;
  readonly arrivedAt: number;
  readonly #ports: Ports;
  readonly #reject: (error: unknown) => void;
  #settled = false;

  constructor(
    ports: Ports,
    targets: number,
    work: Work,
    ask: (done: (settle: () => void) => void) => A,
    reject: (error: unknown) => void,
  ) {
    this.#ports = ports;
    this.#reject = reject;
    this.targets = targets;
    this.work = work;
    this.arrivedAt = ports.monotonic();
    this.ask = ask((settle) => {
      this.#settled = true;
      settle();
    });
  }

  get open(): boolean {
    return !this.#settled && !this.work.signal?.aborted && this.#ports.monotonic() < this.work.deadline;
  }

  refuse(error: unknown): void {
    this.#settled = true;
    this.#reject(error);
  }

  /** Refuses itself once its time is over. */
  stillWaits(): boolean {
    if (this.#settled) return false;
    try {
      assertInTime(this.work, this.#ports);
      return true;
    } catch (error) {
      this.refuse(error);
      return false;
    }
  }
}
