/** How many new generations one incarnation may be issued: each stands in the store for a day (state §7). */

import { AuthorityError } from "../../shared/errors.ts";
import { CALLOUT } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";
import { keepRecent } from "../../shared/recent.ts";
import type { Uid } from "../../shared/tokens.ts";

interface Bucket {
  readonly left: number;
  /** When `left` was counted, monotonic ms. */
  readonly at: number;
}

/** One bucket per incarnation and replica: `issuedBurst` at once, one more every `issuedEveryMs`. */
export class Issuances {
  readonly #ports: Pick<Ports, "monotonic">;
  /** In order of use. */
  readonly #buckets = new Map<Uid, Bucket>();

  constructor(ports: Pick<Ports, "monotonic">) {
    this.#ports = ports;
  }

  /** Takes one, or `resource-exhausted`. */
  take(uid: Uid): void {
    const now = this.#ports.monotonic();
    const left = this.#left(uid, now);
    if (left < 1) {
      throw new AuthorityError("resource-exhausted", "too many connections under fresh nonces", {
        reason: "a client that reconnects keeps its nonce",
      });
    }
    keepRecent(this.#buckets, uid, { left: left - 1, at: now }, CALLOUT.issuedBuckets);
  }

  #left(uid: Uid, now: number): number {
    const bucket = this.#buckets.get(uid);
    if (!bucket) return CALLOUT.issuedBurst;
    return Math.min(CALLOUT.issuedBurst, bucket.left + (now - bucket.at) / CALLOUT.issuedEveryMs);
  }
}
