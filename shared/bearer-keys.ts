/** The keys a bearer may be signed with: `trust` as a verifier keeps it (identity §4). */
import { createPublicKey, type KeyObject } from "node:crypto";
import type { JWK } from "jose";
import type { VerificationKey } from "./bearer.ts";
import { internal } from "./errors.ts";
import { BEARER, ISSUER } from "./limits.ts";
import type { Ports } from "./ports.ts";

/** What a verifier reads of the `trust` row. */
export interface TrustedIssuer {
  readonly issuer: string;
  readonly keys: readonly JWK[];
}

interface Kept {
  readonly readAt: number;
  readonly issuer: string;
  readonly keys: ReadonlyMap<string, KeyObject>;
}

/** One per process: `validateBearer(token, space, (kid) => keys.of(kid), ports)`. */
export class BearerKeys {
  readonly #read: () => Promise<TrustedIssuer>;
  readonly #ports: Pick<Ports, "monotonic">;
  #kept: Kept | undefined;
  #reading: Promise<Kept> | undefined;

  /** `read` gives the row from the leader; absent or unreadable, it throws what every bearer is then refused with. */
  constructor(read: () => Promise<TrustedIssuer>, ports: Pick<Ports, "monotonic">) {
    this.#read = read;
    this.#ports = ports;
  }

  /** Kept 60 s and never used longer; an unknown `kid` reads again, at most every 5 s. */
  async of(kid: string): Promise<VerificationKey | undefined> {
    const kept = this.#youngerThan(BEARER.trustMs) ?? (await this.#refresh());
    const known = keyOf(kept, kid);
    if (known || this.#youngerThan(BEARER.rereadMs)) return known;
    return keyOf(await this.#refresh(), kid);
  }

  #youngerThan(ms: number): Kept | undefined {
    return this.#kept && this.#ports.monotonic() - this.#kept.readAt < ms ? this.#kept : undefined;
  }

  /** One read at a time, shared by all who wait for it. */
  #refresh(): Promise<Kept> {
    this.#reading ??= this.#load().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #load(): Promise<Kept> {
    const readAt = this.#ports.monotonic(); // before the read: a slow answer is no younger for it
    const { issuer, keys } = await this.#read();
    this.#kept = { readAt, issuer, keys: new Map(keys.slice(0, ISSUER.maxKeys).map(keyObject)) };
    return this.#kept;
  }
}

function keyOf(kept: Kept, kid: string): VerificationKey | undefined {
  const publicKey = kept.keys.get(kid);
  return publicKey && { issuer: kept.issuer, publicKey };
}

function keyObject({ kid, kty, crv, x }: JWK): [string, KeyObject] {
  if (kid === undefined || kty !== "OKP" || crv !== "Ed25519" || x === undefined) {
    throw internal("trust holds a key that is no Ed25519 key with a kid");
  }
  return [kid, createPublicKey({ key: { kty, crv, x }, format: "jwk" })];
}
