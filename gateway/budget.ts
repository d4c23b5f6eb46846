/** How many requests one face works on at once, and how many of them are one peer's (identity §11.3). */
import { GATEWAY } from "../shared/limits.ts";
import { isLoopback } from "./face.ts";
import { HttpFault } from "./problem.ts";

/** What a request occupies; both are given up by `release`. */
export interface Seat {
  /** Once the body is complete. */
  enterFlight(): void;
  release(): void;
}

export class Budget {
  #inFlight = 0;
  readonly #peers = new Map<string, number>();

  get inFlight(): number {
    return this.#inFlight;
  }

  /** From arrival on, so that slow bodies count; a loopback address is shared by many and no peer. */
  seat(peer: string): Seat {
    const counted = !isLoopback(peer);
    if (counted) this.#enterPeer(peer);
    let flying = false;
    let open = true;
    return {
      enterFlight: () => {
        if (this.#inFlight >= GATEWAY.inFlight) throw busy();
        this.#inFlight += 1;
        flying = true;
      },
      release: () => {
        if (!open) return;
        open = false;
        if (flying) this.#inFlight -= 1;
        if (counted) this.#leavePeer(peer);
      },
    };
  }

  #enterPeer(peer: string): void {
    const count = this.#peers.get(peer) ?? 0;
    if (count >= GATEWAY.peerInFlight) throw busy();
    this.#peers.set(peer, count + 1);
  }

  #leavePeer(peer: string): void {
    const count = (this.#peers.get(peer) ?? 1) - 1;
    if (count === 0) this.#peers.delete(peer);
    else this.#peers.set(peer, count);
  }
}

const busy = (): HttpFault =>
  new HttpFault(503, "unavailable", "too many requests in flight, ask again", {
    "retry-after": String(GATEWAY.retryAfterS),
  });
