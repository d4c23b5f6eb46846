/** The keys of one pinned provider: from the pin, or fetched and kept within bounds (identity §2). */
import { type CryptoKey, importJWK, type JWK } from "jose";
import { textOf, unavailable } from "../../shared/errors.ts";
import { IDP } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";
import { fetchKeys, fits } from "../../shared/provider-keys.ts";
import type { IdpPin, PinAlgorithm } from "../../shared/secrets/pins.ts";

interface KeySet {
  readonly fetchedAt: number;
  readonly keys: readonly JWK[];
  /** Imported on first use, by kid and algorithm. */
  readonly imported: Map<string, Promise<CryptoKey>>;
}

export class IdpKeys {
  readonly #pin: IdpPin;
  readonly #ports: Ports;
  #kept: KeySet | undefined;
  #fetching: Promise<KeySet> | undefined;
  #failure: { readonly at: number; readonly error: unknown } | undefined;

  constructor(pin: IdpPin, ports: Ports) {
    this.#pin = pin;
    this.#ports = ports;
    if (pin.keys) this.#kept = { fetchedAt: Number.POSITIVE_INFINITY, keys: pin.keys, imported: new Map() };
  }

  /** The key for that kid and algorithm, if there is exactly one and it fits; unreachable keys are `unavailable`. */
  async find(kid: string, alg: PinAlgorithm): Promise<CryptoKey | undefined> {
    let set = this.#youngerThan(IDP.keepMs) ?? (await this.#fetch(IDP.failedMs));
    if (!has(set, kid) && !this.#youngerThan(IDP.cooldownMs)) set = await this.#fetch(IDP.cooldownMs);
    const named = set.keys.filter((jwk) => jwk.kid === kid);
    const [jwk] = named;
    if (!jwk || named.length > 1 || !fits(jwk, alg)) return undefined;
    const name = `${alg} ${kid}`;
    const key = set.imported.get(name) ?? importPublic(jwk, alg);
    set.imported.set(name, key);
    return key;
  }

  #youngerThan(ms: number): KeySet | undefined {
    return this.#kept && this.#ports.monotonic() - this.#kept.fetchedAt < ms ? this.#kept : undefined;
  }

  /** One fetch at a time, shared by all who wait; a failed one speaks for the next `holdMs`. */
  #fetch(holdMs: number): Promise<KeySet> {
    if (!this.#fetching && this.#failure && this.#ports.monotonic() - this.#failure.at < holdMs) {
      return Promise.reject(this.#failure.error);
    }
    this.#fetching ??= this.#load().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #load(): Promise<KeySet> {
    const fetchedAt = this.#ports.monotonic(); // before the fetch: a slow answer is no younger for it
    try {
      const keys = await fetchKeys(this.#pin.jwksUri ?? "", this.#ports);
      this.#failure = undefined;
      this.#kept = { fetchedAt, keys, imported: new Map() };
      return this.#kept;
    } catch (cause) {
      const error = unavailable(`keys of ${this.#pin.issuer}: ${whyOf(cause)}`, cause);
      this.#failure = { at: this.#ports.monotonic(), error };
      throw error;
    }
  }
}

/** A failed `fetch` says why only in its cause. */
const whyOf = (error: unknown): string =>
  error instanceof Error && error.cause !== undefined ? `${error.message}: ${textOf(error.cause)}` : textOf(error);

const has = (set: KeySet, kid: string): boolean => set.keys.some((jwk) => jwk.kid === kid);

/** The public members alone: a key that a provider published with its private half still only verifies. */
async function importPublic({ kty, crv, x, y, n, e }: JWK, alg: PinAlgorithm): Promise<CryptoKey> {
  const jwk = Object.fromEntries(Object.entries({ kty, crv, x, y, n, e }).filter(([, value]) => value !== undefined));
  const key = await importJWK(jwk as JWK, alg);
  if (key instanceof Uint8Array) throw new TypeError("a symmetric key");
  return key;
}
