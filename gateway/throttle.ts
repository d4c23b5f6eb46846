/** Failed credentials per peer in a sliding minute (identity §11.3). */

import { AuthorityError } from "../shared/errors.ts";
import { GATEWAY } from "../shared/limits.ts";
import type { Ports } from "../shared/ports.ts";
import { keepRecent } from "../shared/recent.ts";

/**
 * A full bucket alone refuses nobody: the credential is verified all the same, and only a failed one under a full
 * bucket is answered `resource-exhausted`. So a good credential passes even from an address that was throttled.
 */
export class Throttle {
  /** When each of the last refusals was, oldest first; the map is in order of use. */
  readonly #refusals = new Map<string, number[]>();
  readonly #ports: Pick<Ports, "monotonic">;

  constructor(ports: Pick<Ports, "monotonic">) {
    this.#ports = ports;
  }

  /** Charges a failed verification and gives what the peer is told about it. */
  refuse(peer: string, failed: AuthorityError): AuthorityError {
    const now = this.#ports.monotonic();
    const recent = this.#recent(peer, now);
    const [oldest] = recent;
    if (oldest !== undefined && recent.length >= GATEWAY.refusalsPerMinute) return exhausted(oldest - now);
    recent.push(now);
    return failed;
  }

  #recent(peer: string, now: number): number[] {
    const kept = (this.#refusals.get(peer) ?? []).filter((at) => now - at < GATEWAY.refusalWindowMs);
    keepRecent(this.#refusals, peer, kept, GATEWAY.peers);
    return kept;
  }
}

/** No reason: whether this one failed is not told. */
function exhausted(sinceOldest: number): AuthorityError {
  const seconds = Math.max(1, Math.ceil((sinceOldest + GATEWAY.refusalWindowMs) / 1_000));
  return new AuthorityError("resource-exhausted", "too many failed credentials, ask again later", {
    details: [{ kind: "ai.cotal.ep.retry-after", seconds }],
    outcome: "not-executed",
  });
}
