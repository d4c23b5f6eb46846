/** Verifies what a pinned identity provider says about a person (identity §2). */
import { type CryptoKey, compactVerify } from "jose";
import type { JsonObject } from "../../shared/envelope.ts";
import { isAuthorityError } from "../../shared/errors.ts";
import { BadToken, takeApart, unauthenticated } from "../../shared/jws.ts";
import { IDP, LIFE } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";
import { DEFAULT_ALGORITHMS, type IdpPin, type PinAlgorithm } from "../../shared/secrets/pins.ts";
import { IdpKeys } from "./idp-keys.ts";

/** A login that was proven. */
export interface Proof {
  readonly issuer: string;
  readonly subject: string;
  /** Whole Unix seconds; nothing that stands on this proof may live longer. */
  readonly exp: number;
}

/** Header members that would let a token choose its own key, or ask for what we do not know. */
const FOREIGN_KEYS = ["jku", "jwk", "x5u", "x5c", "crit"] as const;

export class IdpVerifier {
  readonly #pins: ReadonlyMap<string, { readonly pin: IdpPin; readonly keys: IdpKeys }>;
  readonly #ports: Ports;

  constructor(pins: readonly IdpPin[], ports: Ports) {
    this.#pins = new Map(pins.map((pin) => [pin.issuer, { pin, keys: new IdpKeys(pin, ports) }]));
    this.#ports = ports;
  }

  /** `unauthenticated` with one sentence for every fault; `unavailable` while the provider's keys are unreachable. */
  async verify(token: string): Promise<Proof> {
    try {
      return await this.#verify(token);
    } catch (error) {
      throw error instanceof BadToken ? unauthenticated("proof of login", error) : error;
    }
  }

  /** In this order, the first failure ends it. */
  async #verify(token: string): Promise<Proof> {
    const jws = takeApart(token, IDP.maxToken);
    const { alg, kid } = plainHeader(jws.header);
    const claims = jws.payload();
    const pinned = typeof claims.iss === "string" ? this.#pins.get(claims.iss) : undefined;
    if (!pinned) throw new BadToken("iss: not a pinned issuer");
    const allowed = (pinned.pin.algorithms ?? DEFAULT_ALGORITHMS).find((one) => one === alg);
    if (!allowed) throw new BadToken("alg: not of this pin");
    const key = await keyFor(pinned.keys, kid, allowed);
    await signature(token, key, allowed);
    audience(claims, pinned.pin.audience);
    const exp = timely(claims, Math.floor(this.#ports.now() / 1_000));
    return { issuer: pinned.pin.issuer, subject: subjectOf(claims), exp };
  }
}

function plainHeader(header: JsonObject): { alg: string; kid: string } {
  const { alg, kid } = header;
  if (typeof alg !== "string" || typeof kid !== "string") throw new BadToken("header: no alg or no kid");
  for (const name of FOREIGN_KEYS) {
    if (Object.hasOwn(header, name)) throw new BadToken(`header: ${name}`);
  }
  return { alg, kid };
}

async function keyFor(keys: IdpKeys, kid: string, alg: PinAlgorithm): Promise<CryptoKey> {
  let key: CryptoKey | undefined;
  try {
    key = await keys.find(kid, alg);
  } catch (cause) {
    if (isAuthorityError(cause)) throw cause;
    throw new BadToken("kid: the key cannot be used", { cause });
  }
  if (!key) throw new BadToken("kid: no such key, or one that does not fit");
  return key;
}

async function signature(token: string, key: CryptoKey, alg: PinAlgorithm): Promise<void> {
  try {
    await compactVerify(token, key, { algorithms: [alg] });
  } catch (cause) {
    throw new BadToken("signature", { cause });
  }
}

/** One audience, ours: whoever else is named could replay the token here. */
function audience({ aud }: JsonObject, expected: string): void {
  const only = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  if (only !== expected) throw new BadToken("aud");
}

function timely({ exp, nbf, iat }: JsonObject, now: number): number {
  if (!isInteger(exp)) throw new BadToken("exp: no integer");
  if (exp <= now - LIFE.skewS) throw new BadToken("exp: passed");
  if (exp > now + IDP.maxAheadS) throw new BadToken("exp: too far ahead");
  for (const [name, value] of Object.entries({ nbf, iat })) {
    if (value === undefined) continue;
    if (!isInteger(value) || value > now + LIFE.skewS) throw new BadToken(`${name}: not yet`);
  }
  return exp;
}

function subjectOf({ sub }: JsonObject): string {
  if (typeof sub !== "string" || sub.length < 1 || sub.length > IDP.maxSubject) throw new BadToken("sub");
  return sub;
}

const isInteger = (value: unknown): value is number => Number.isSafeInteger(value);
