/** Kicks whoever is found and sweeps until nobody is, or says who is left (lifecycles §2.4). */
import type { Eviction } from "../../shared/custody.ts";
import type { Ports } from "../../shared/ports.ts";
import { type AccountNkey, type Principal, splitPrincipal } from "../../shared/tokens.ts";
import type { Member } from "./round.ts";
import type { Connection, Sweep, Walk } from "./sweep.ts";
import type { CustodianLimits } from "./system.ts";

export interface EvictAsk {
  readonly principals: readonly Principal[];
  readonly answer: (evictions: Eviction[]) => void;
}

export interface EvictOptions {
  /** The space account: the only one that has others' principals. */
  readonly account: AccountNkey;
  readonly sweep: () => Promise<Sweep>;
  /** `undefined` is an answer that did not come. */
  readonly kick: (connection: Connection) => Promise<"kicked" | "gone" | undefined>;
  readonly ports: Ports;
  readonly limits: Pick<
    CustodianLimits,
    "settleBaseMs" | "afterKickMs" | "evictRounds" | "kicksInFlight" | "discoverMinMs"
  >;
  /** Aborts every wait when the service closes. */
  readonly signal?: AbortSignal;
}

/** `first` is the round's sweep, begun after the last arrival. Members whose time runs out stay unanswered. */
export async function evict(members: readonly Member<EvictAsk>[], first: Sweep, options: EvictOptions): Promise<void> {
  const eviction = new RoundEviction(members, options);
  let sweep = first;
  for (let again = 0; ; ) {
    const verifying = eviction.see(sweep);
    eviction.answer(verifying, again === options.limits.evictRounds);
    if (verifying && sweep !== first) again += 1;
    await eviction.kick();
    if (!(await eviction.wait())) return;
    sweep = await options.sweep();
  }
}

class RoundEviction {
  readonly #members: readonly Member<EvictAsk>[];
  readonly #options: EvictOptions;
  readonly #lastArrival: number;
  /** No callout admits anyone of ours, so none can be under way. */
  readonly #settles: boolean;
  readonly #askers = new Map<Principal, Member<EvictAsk>[]>();
  readonly #kicked = new Map<Principal, number>();
  #authTimeoutMs = 0;
  #lastKick = Number.NEGATIVE_INFINITY;
  #walk: Walk = { pages: new Map(), connections: new Map(), complete: false };

  constructor(members: readonly Member<EvictAsk>[], options: EvictOptions) {
    this.#members = members;
    this.#options = options;
    this.#lastArrival = Math.max(...members.map(({ arrivedAt }) => arrivedAt));
    for (const member of members) {
      for (const principal of member.ask.principals) {
        this.#askers.set(principal, [...(this.#askers.get(principal) ?? []), member]);
      }
    }
    this.#settles = [...this.#askers.keys()].some((principal) => splitPrincipal(principal).owner !== "local");
  }

  /** Takes the sweep as the last one; whether it began late enough to verify. */
  see(sweep: Sweep): boolean {
    this.#authTimeoutMs = Math.max(this.#authTimeoutMs, sweep.authTimeoutMs);
    this.#walk = sweep.walk(this.#options.account);
    return sweep.startedAt >= this.#due();
  }

  /** A verifying sweep answers whoever has nobody left in it, the last one everybody. */
  answer(verifying: boolean, last: boolean): void {
    if (!verifying) return;
    for (const member of this.#open()) {
      const gone = member.ask.principals.every((principal) => this.#foundOf(principal).length === 0);
      if (gone || last) this.#answer(member, true, "it keeps coming back");
    }
  }

  /** Kicks what the last sweep found of members still open. "No such client" counts as already gone. */
  async kick(): Promise<void> {
    const { kick, ports, limits } = this.#options;
    const left = [...this.#askers.keys()].flatMap((principal) =>
      this.#foundOf(principal).map((connection) => ({ principal, connection })),
    );
    const worker = async (): Promise<void> => {
      for (let next = left.pop(); next; next = left.pop()) {
        const { principal, connection } = next;
        const askers = (this.#askers.get(principal) ?? []).filter(({ open }) => open);
        if (askers.length === 0) continue;
        const kicked = kick(connection);
        await Promise.all(askers.map(({ work }) => work.effects.during(kicked)));
        const result = await kicked;
        this.#lastKick = ports.monotonic();
        if (result === "kicked") this.#kicked.set(principal, (this.#kicked.get(principal) ?? 0) + 1);
        for (const { work } of askers) {
          if (result === "kicked") work.effects.acked();
          else if (result === undefined) work.effects.unsettled();
        }
      }
    };
    await Promise.all(Array.from({ length: limits.kicksInFlight }, worker));
  }

  /** Until the next sweep may verify. Who has no time for one is told so now; false when nobody is left. */
  async wait(): Promise<boolean> {
    const { ports, limits, signal } = this.#options;
    const due = this.#due();
    for (const member of this.#open()) {
      const enough = Math.max(due, ports.monotonic()) + 2 * limits.discoverMinMs < member.work.deadline;
      if (!enough) this.#answer(member, false, "no time was left for a verifying sweep");
    }
    if (this.#open().length === 0) return false;
    // A timer may fire a moment early, and a sweep begun then would verify nothing.
    for (let left = due - ports.monotonic(); left > 0; left = due - ports.monotonic()) {
      await ports.sleep(Math.ceil(left), signal);
    }
    return true;
  }

  #answer({ ask }: Member<EvictAsk>, verifying: boolean, why: string): void {
    const { complete, note = why } = this.#walk;
    ask.answer(
      ask.principals.map((principal) => {
        const remaining = this.#foundOf(principal).length;
        const verifiedGone = verifying && complete && remaining === 0;
        const kicked = this.#kicked.get(principal) ?? 0;
        return {
          principal,
          kicked,
          remaining,
          verifiedGone,
          scanComplete: complete,
          ...(verifiedGone ? {} : { note }),
        };
      }),
    );
  }

  #due(): number {
    const settled = this.#lastArrival + (this.#settles ? this.#options.limits.settleBaseMs + this.#authTimeoutMs : 0);
    return Math.max(settled, this.#lastKick + this.#options.limits.afterKickMs);
  }

  #open(): Member<EvictAsk>[] {
    return this.#members.filter(({ open }) => open);
  }

  #foundOf(principal: Principal): readonly Connection[] {
    return this.#walk.connections.get(principal) ?? [];
  }
}
