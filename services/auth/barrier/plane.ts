/**
 * This replica and the plane claim: tries for it, holds it, loses it with the `scan` connection or the row, tries
 * again, and gives it up at the close (lifecycles §4). Standing by is no error: issuing goes on without it.
 */
import type { Logger } from "pino";
import { type PlaneRefusal, reasonOf, textOf } from "../../../shared/errors.ts";
import { BARRIER, PEER_WAIT, RESCAN_MS, STOP } from "../../../shared/limits.ts";
import { jitter, newUid } from "../../../shared/ports.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type Plane, planeRows } from "../../../shared/rows/plane.ts";
import type { Store } from "../../../shared/store/store.ts";
import type { Uid } from "../../../shared/tokens.ts";
import { ownWork } from "../../../shared/work.ts";
import type { ScanConnection } from "../scan-connection.ts";
import { type Attempt, type Claiming, releaseClaim, tryClaim } from "./claim.ts";
import { Held } from "./held.ts";
import { planeHeld } from "./metrics.ts";
import { Signal } from "./signal.ts";

export interface PlaneOptions extends Claiming {
  readonly store: Store;
  /** In the authority account: the connection that the claim names. */
  readonly scan: Pick<ScanConnection, "current" | "tuple" | "onEnded" | "close">;
  readonly log: Logger;
}

/** Who claims; known once this replica serves. */
export interface Serving {
  readonly instanceId: Uid;
  readonly epoch: number;
}

export class PlaneClaim {
  readonly #options: PlaneOptions;
  readonly #stopping = new AbortController();
  /** Something may have changed for this replica's prospects. */
  readonly #changed = new Signal();
  #watching: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();
  #held: Held | undefined;
  #reason: PlaneRefusal | undefined;
  /** What stands in the row as far as this replica knows, until it is given up. */
  #claimed: Entry<Plane> | undefined;
  #idle: () => Promise<void> = async () => {};

  constructor(options: PlaneOptions) {
    this.#options = options;
    options.scan.onEnded(() => {
      this.#held?.lose(this.#stopping.signal.aborted ? "released" : "fenced");
      this.#changed.notify();
    });
  }

  /** The claim, while this replica holds it. */
  get held(): Held | undefined {
    return this.#held;
  }

  /** Why it does not; `unknown` until a first try has ended. */
  get reason(): PlaneRefusal | undefined {
    return this.#held ? undefined : (this.#reason ?? "unknown");
  }

  /** Tries from now on. `whileHeld` runs from each win until that claim is lost; `idle` waits for what it began. */
  start(serving: Serving, whileHeld: (held: Held) => Promise<void>, idle: () => Promise<void>): void {
    this.#idle = idle;
    this.#running = this.#run(serving, whileHeld);
  }

  /**
   * Stops barriers at a step boundary, closes the `scan` connection, gives the claim up. Repeatable; what could not be
   * confirmed rejects, and a successor reclaims on proof. `store` is asked for at the release.
   */
  async release(store: () => Promise<Pick<Store, "read" | "commit">>): Promise<void> {
    const { ports, scan, log } = this.#options;
    this.#held?.close();
    this.#stopping.abort();
    this.#changed.notify();
    await Promise.race([this.#idle(), ports.sleep(STOP.claimReleaseMs)]);
    this.#held?.lose("released");
    await scan.close();
    await Promise.race([this.#running, ports.sleep(STOP.claimReleaseMs)]);
    if (!this.#claimed) return;
    const claim = this.#claimed;
    try {
      const outcome = await releaseClaim(await store(), claim, ownWork(ports, STOP.claimReleaseMs));
      this.#claimed = undefined;
      this.#reason = "released";
      log.info({ claimId: claim.value.claimId, outcome }, "plane claim given up");
    } catch (error) {
      this.#reason = "release-unreachable";
      log.warn({ claimId: claim.value.claimId, err: reasonOf(error) }, "plane claim not confirmed as given up");
      throw error;
    }
  }

  async #run(serving: Serving, whileHeld: (held: Held) => Promise<void>): Promise<void> {
    const { ports } = this.#options;
    const { signal } = this.#stopping;
    for (let tries = 0; !signal.aborted; tries += 1) {
      const seen = this.#changed.count;
      this.#watch();
      const held = await this.#attempt(serving, seen);
      if (held) {
        tries = 0;
        await this.#hold(held, whileHeld);
      }
      await this.#changed.next(seen, ports, this.#pause(tries), signal);
    }
  }

  /** A replica that stands by looks again with each rescan; one that could hold the claim, sooner. */
  #pause(tries: number): number {
    const { ports } = this.#options;
    if (this.#reason === "live-peer" || this.#reason === "corrupt") return RESCAN_MS;
    return jitter(ports, PEER_WAIT, this.#reason === "fenced" ? 0 : tries);
  }

  /** Whoever holds the row: each change of it is looked at. One watch per `scan` connection. */
  #watch(): void {
    const { store, scan } = this.#options;
    if (this.#watching || !scan.current()) return;
    const watching = new AbortController();
    this.#watching = watching;
    const hint = () => {
      this.#changed.notify();
      void this.#held?.check().catch(() => {});
    };
    const signal = AbortSignal.any([watching.signal, this.#stopping.signal]);
    void store
      .watch(planeRows.key({}), signal, hint)
      .catch(() => {})
      .then(() => {
        this.#watching = undefined;
      });
  }

  /** `seen`: as far as changes were known when it began; a later one makes what it asks pointless. */
  async #attempt({ instanceId, epoch }: Serving, seen: number): Promise<Held | undefined> {
    const { store, scan, ports, log } = this.#options;
    const tuple = scan.tuple();
    if (!tuple) return this.#refuse({ refused: "fenced" });
    const claimId = `${instanceId}.${epoch}.${newUid(ports).slice(0, 26)}`;
    const stale = new AbortController();
    const stop = AbortSignal.any([stale.signal, this.#stopping.signal]);
    void this.#changed.next(seen, ports, BARRIER.stepMs, stop).then(() => stale.abort());
    try {
      const work = ownWork(ports, BARRIER.stepMs, this.#stopping.signal);
      const attempt = await tryClaim(this.#options, { claimId, tuple }, work, stale.signal);
      if ("refused" in attempt) return stale.signal.aborted ? undefined : this.#refuse(attempt);
      this.#claimed = attempt.claim;
      const held = new Held(attempt.claim, store);
      if (scan.tuple() !== tuple) held.lose("fenced");
      if (this.#stopping.signal.aborted) held.lose("released");
      return held;
    } catch (error) {
      log.warn({ err: reasonOf(error) }, "the plane claim could not be tried for");
      this.#reason = "unknown";
      return undefined;
    } finally {
      stale.abort();
    }
  }

  async #hold(held: Held, whileHeld: (held: Held) => Promise<void>): Promise<void> {
    const { log } = this.#options;
    const { claimId, generation } = held.entry.value;
    if (!held.signal.aborted) {
      this.#held = held;
      this.#reason = undefined;
      planeHeld.set(1);
      log.info({ claimId, generation }, "this replica runs retirements");
      await whileHeld(held).catch((error: unknown) => log.error({ err: textOf(error) }, "barriers stopped"));
    }
    this.#held = undefined;
    planeHeld.set(0);
    this.#reason = held.reason ?? "lost";
    if (this.#reason === "lost") this.#claimed = undefined;
    log[this.#reason === "released" ? "info" : "warn"]({ claimId, reason: this.#reason }, SAYS[this.#reason]);
  }

  #refuse(attempt: Extract<Attempt, { refused: unknown }> | { readonly refused: "fenced" }): undefined {
    const { log } = this.#options;
    const { refused } = attempt;
    if (refused !== this.#reason) {
      const { holder, note } = "holder" in attempt || "note" in attempt ? attempt : {};
      const fields = {
        reason: refused,
        ...(holder ? { claimId: holder.claimId, since: holder.openedAt } : {}),
        ...(note === undefined ? {} : { note }),
      };
      log[refused === "live-peer" ? "info" : refused === "corrupt" ? "error" : "warn"](fields, SAYS[refused]);
    }
    this.#reason = refused;
  }
}

/** What an operator reads; none of them advises to stop anything. */
const SAYS: Readonly<Record<PlaneRefusal, string>> = {
  corrupt: "the plane row is unreadable: inspect it at its revision, repair-row; nothing was changed",
  "live-peer": "another replica runs retirements; this one issues and stands by",
  unknown: "the former holder of the plane claim is not proven gone",
  concurrent: "the plane claim went to others twice, trying again",
  fenced: "the scan connection ended: barriers stop here, claiming again with a new connection",
  released: "the plane claim is given up",
  lost: "the plane claim is another's: results are discarded",
  "release-unreachable": "the release of the plane claim is not confirmed",
};
