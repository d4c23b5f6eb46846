/** What an identity provider publishes, fetched within bounds, and which of its keys fit (identity §2). */
import type { JWK } from "jose";
import { type Json, parseStrict } from "./canonical.ts";
import { IDP, WIRE } from "./limits.ts";
import type { Ports } from "./ports.ts";
import { isTrustworthyUrl, type PinAlgorithm } from "./secrets/pins.ts";

/** What stands at an address of a provider: no redirect, 5 s in all, at most 64 KiB. */
export async function fetchJson(url: string, ports: Ports): Promise<Json> {
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
    return parseStrict(await bounded(response), { maxBytes: IDP.maxJwks, maxDepth: WIRE.maxDepth });
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

/** The keys of a JWK set; each is still to be judged. */
export async function fetchKeys(url: string, ports: Ports): Promise<JWK[]> {
  const value = await fetchJson(url, ports);
  const keys = typeof value === "object" && value !== null && !Array.isArray(value) ? value.keys : undefined;
  if (!Array.isArray(keys)) throw new Error("not a JWK set");
  return keys.filter((key): key is { [member: string]: never } => typeof key === "object" && key !== null);
}

/** The type that the algorithm asks for, and nothing in the key against it. */
export function fits(jwk: JWK, alg: PinAlgorithm): boolean {
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
