/** The claim while it is held: what barriers run under, and what stops them (lifecycles §4, Hold and Lose). */
import { AuthorityError, isAuthorityError, type PlaneRefusal } from "../../../shared/errors.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import type { Plane } from "../../../shared/rows/plane.ts";
import type { Reader } from "../../../shared/store/store.ts";

/** A caller who needs a barrier learns why none runs here. */
export const planeRefused = (reason: PlaneRefusal): AuthorityError =>
  new AuthorityError("unavailable", "retirements do not run here now, ask again", {
    details: [{ kind: "ai.cotal.auth.plane-claim-refused", reason }],
    reason: `plane: ${reason}`,
    outcome: "unknown",
  });

export class Held {
  /** The row as it was won: the fence of every commit. */
  readonly entry: Entry<Plane>;
  readonly #store: Reader;
  readonly #lost = new AbortController();
  #closing = false;
  #reason: PlaneRefusal | undefined;

  constructor(entry: Entry<Plane>, store: Reader) {
    this.entry = entry;
    this.#store = store;
  }

  /** Aborts when the claim is lost: whatever awaits stops. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get reason(): PlaneRefusal | undefined {
    return this.#reason;
  }

  /** From here on no barrier begins another step. */
  close(): void {
    this.#closing = true;
  }

  lose(reason: PlaneRefusal): void {
    this.#reason ??= reason;
    this.#lost.abort(planeRefused(this.#reason));
  }

  /** Throws where no step may begin. */
  proceed(): void {
    if (this.#reason) throw planeRefused(this.#reason);
    if (this.#closing) throw planeRefused("released");
  }

  /** Runs what is believed only if the row was this claim's before and after it, read from the leader. */
  async hold<V>(believed: () => Promise<V>): Promise<V> {
    await this.check();
    const value = await believed();
    await this.check();
    return value;
  }

  /** The row may have moved: at another revision it is not this claim any more. */
  async check(): Promise<void> {
    this.#refuse();
    let now: Entry<Plane> | undefined;
    try {
      now = await this.#store.read(this.entry.key);
    } catch (error) {
      if (isAuthorityError(error, "internal")) this.lose("corrupt");
      this.#refuse();
      throw error;
    }
    if (now?.revision !== this.entry.revision) this.lose("lost");
    this.#refuse();
  }

  #refuse(): void {
    if (this.#reason) throw planeRefused(this.#reason);
  }
}
