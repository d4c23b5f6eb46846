/** How many requests one process works on at once, and how they are shared out (wire §3, check 3). */
import { AuthorityError } from "../../shared/errors.ts";
import { PLACES } from "../../shared/limits.ts";
import type { Triple } from "../../shared/tokens.ts";

const GATEWAYS = new Set(["gateway_public", "gateway_loopback"]);

/** A gateway's own principal: the only one whose `auth` slot counts. */
export const isGateway = (caller: Triple): boolean => caller.owner === "local" && GATEWAYS.has(caller.actor);

export interface Place {
  /** Counts the person behind a gateway as well, once known. */
  occupy(owner: string): void;
  release(): void;
}

export class Places {
  #total = 0;
  readonly #shares = new Map<string, number>();

  get inFlight(): number {
    return this.#total;
  }

  take(caller: Triple): Place {
    const gateway = isGateway(caller);
    const trusted = caller.owner === "local" && !gateway;
    if (this.#total >= (trusted ? PLACES.service : PLACES.service - PLACES.reserved)) throw full();
    const held: string[] = [];
    if (gateway) this.#add(held, `gateway ${caller.actor}`, PLACES.gateway);
    else if (!trusted) this.#add(held, `owner ${caller.owner}`, PLACES.owner);
    this.#total += 1;
    let open = true;
    return {
      occupy: (owner) => {
        if (open) this.#add(held, `person ${owner}`, PLACES.person);
      },
      release: () => {
        if (!open) return;
        open = false;
        this.#total -= 1;
        for (const share of held) this.#drop(share);
      },
    };
  }

  #add(held: string[], share: string, limit: number): void {
    const count = this.#shares.get(share) ?? 0;
    if (count >= limit) throw full();
    this.#shares.set(share, count + 1);
    held.push(share);
  }

  #drop(share: string): void {
    const count = (this.#shares.get(share) ?? 1) - 1;
    if (count === 0) this.#shares.delete(share);
    else this.#shares.set(share, count);
  }
}

function full(): AuthorityError {
  return new AuthorityError("resource-exhausted", "too many requests in flight, ask again later", {
    details: [{ kind: "ai.cotal.ep.retry-after", seconds: PLACES.retryAfterSeconds }],
  });
}
