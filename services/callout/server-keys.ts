/** The shared key of each server, computed once: a curve multiplication costs many times a box (pitfalls 22). */

import type { KeyPair } from "../../shared/credentials/nkeys.ts";
import { sharedKey } from "../../shared/credentials/sealed.ts";
import { isAuthorityError } from "../../shared/errors.ts";
import { CALLOUT } from "../../shared/limits.ts";
import { keepRecent } from "../../shared/recent.ts";

export class ServerKeys {
  readonly #own: KeyPair;
  readonly #size: number;
  /** Least recently used first. */
  readonly #kept = new Map<string, Uint8Array>();

  constructor(own: KeyPair, size: number = CALLOUT.serverKeys) {
    this.#own = own;
    this.#size = size;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** `undefined` for a text that is no usable curve key. */
  get(xkey: string): Uint8Array | undefined {
    const kept = this.#kept.get(xkey);
    if (kept) return kept;
    try {
      return sharedKey(this.#own, xkey);
    } catch (error) {
      if (isAuthorityError(error, "unauthenticated")) return undefined;
      throw error;
    }
  }

  /** Keeps the key of a server that has opened a box, so that no forged header drives a real one out. */
  keep(xkey: string, key: Uint8Array): void {
    keepRecent(this.#kept, xkey, key, this.#size);
  }
}
