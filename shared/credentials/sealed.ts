/** The sealed boxes of the auth callout, `xkv1`: NaCl box of X25519, XSalsa20 and Poly1305 (identity §9). */
import { createPublicKey, diffieHellman } from "node:crypto";
import { hsalsa, xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { AuthorityError } from "../errors.ts";
import { curvePrivateKey, decodePublic, type KeyPair } from "./nkeys.ts";

/** Every box starts with it. */
const VERSION = new TextEncoder().encode("xkv1");
const NONCE_BYTES = 24;
const TAG_BYTES = 16;
/** "expand 32-byte k", the constant of Salsa20. */
const SIGMA = words(new TextEncoder().encode("expand 32-byte k"));

/**
 * The 32-byte key of all boxes between `own` and a peer, the same from either side. Compute it once per peer and keep it.
 * A peer key that is no curve key, or one of low order, is `unauthenticated`.
 */
export function sharedKey(own: KeyPair, peerPublic: string): Uint8Array {
  const peer = decodePublic(peerPublic);
  if (peer?.kind !== "curve") throw new AuthorityError("unauthenticated", "malformed curve key");
  const x = Buffer.from(peer.bytes).toString("base64url");
  const publicKey = createPublicKey({ key: { kty: "OKP", crv: "X25519", x }, format: "jwk" });
  let point: Uint8Array;
  try {
    point = diffieHellman({ privateKey: curvePrivateKey(own), publicKey });
  } catch (cause) {
    throw new AuthorityError("unauthenticated", "unusable curve key", { cause });
  }
  const key = new Uint32Array(8);
  hsalsa(SIGMA, words(point), new Uint32Array(4), key);
  return new Uint8Array(key.buffer);
}

/** Seals under a shared key. The nonce is 24 random bytes, fresh for every box. */
export function seal(key: Uint8Array, plain: Uint8Array, nonce: Uint8Array): Uint8Array {
  return Buffer.concat([VERSION, nonce, xsalsa20poly1305(key, nonce).encrypt(plain)]);
}

/** What is in the box, or undefined: another version, too short, altered, or sealed under another key. */
export function open(key: Uint8Array, box: Uint8Array): Uint8Array | undefined {
  const start = VERSION.length + NONCE_BYTES;
  if (box.length < start + TAG_BYTES || VERSION.some((byte, i) => box[i] !== byte)) return undefined;
  try {
    return xsalsa20poly1305(key, box.subarray(VERSION.length, start)).decrypt(box.subarray(start));
  } catch {
    return undefined;
  }
}

/** The bytes in memory order, as the cipher library wants them on machines of either order. */
function words(data: Uint8Array): Uint32Array {
  return new Uint32Array(Uint8Array.from(data).buffer);
}
