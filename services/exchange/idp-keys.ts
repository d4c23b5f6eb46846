/** The keys of one pinned provider: from the pin, or fetched and kept within bounds (identity §2). */
import { type CryptoKey, importJWK, type JWK } from "jose";
import { parseStrict } from "../../shared/canonical.ts";
import { textOf, unavailable } from "../../shared/errors.ts";
import { IDP, WIRE } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";
import { type IdpPin, isTrustworthyUrl, type PinAlgorithm } from "../../shared/secrets/pins.ts";

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

/** No redirect, 5 s in all, at most 64 KiB. */
async function fetchKeys(url: string, ports: Ports): Promise<JWK[]> {
  if (!isTrustworthyUrl(url)) throw new Error("not an address to fetch from");
  const giveUp = new AbortController();
  const done = new AbortController();
  ports.sleep(IDP.fetchMs, done.signal).then(
    () => giveUp.abort(new Error("no answer in time")),
    () => {},
  );
  try {
    const response = await fetch(url, {
      redirect: "error",
      signal: giveUp.signal,
      headers: { accept: "application/json, application/jwk-set+json" },
    });
    if (response.status !== 200) throw new Error(`status ${response.status}`);
    return parseKeys(await bounded(response));
  } finally {
    giveUp.abort(); // whatever is still coming is not read
    done.abort();
  }
}

async function bounded(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > IDP.maxJwks) throw new Error("larger than 64 KiB");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parseKeys(body: Uint8Array): JWK[] {
  const value = parseStrict(body, { maxBytes: IDP.maxJwks, maxDepth: WIRE.maxDepth });
  const keys = typeof value === "object" && value !== null && !Array.isArray(value) ? value.keys : undefined;
  if (!Array.isArray(keys)) throw new Error("not a JWK set");
  return keys.filter((key): key is { [member: string]: never } => typeof key === "object" && key !== null);
}

/** The type that the algorithm asks for, and nothing in the key against it. */
function fits(jwk: JWK, alg: PinAlgorithm): boolean {
  if ((jwk.alg !== undefined && jwk.alg !== alg) || (jwk.use !== undefined && jwk.use !== "sig")) return false;
  switch (alg) {
    case "EdDSA":
      return jwk.kty === "OKP" && jwk.crv === "Ed25519";
    case "ES256":
      return jwk.kty === "EC" && jwk.crv === "P-256";
    case "RS256":
      return jwk.kty === "RSA" && typeof jwk.n === "string" && bitsOf(jwk.n) >= IDP.minRsaBits;
  }
}

function bitsOf(modulus: string): number {
  const hex = Buffer.from(modulus, "base64url").toString("hex").replace(/^0+/, "");
  return hex === "" ? 0 : BigInt(`0x${hex}`).toString(2).length;
}

/** The public members alone: a key that a provider published with its private half still only verifies. */
async function importPublic({ kty, crv, x, y, n, e }: JWK, alg: PinAlgorithm): Promise<CryptoKey> {
  const jwk = Object.fromEntries(Object.entries({ kty, crv, x, y, n, e }).filter(([, value]) => value !== undefined));
  const key = await importJWK(jwk as JWK, alg);
  if (key instanceof Uint8Array) throw new TypeError("a symmetric key");
  return key;
}
