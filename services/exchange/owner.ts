/**
 * Who an owner is follows from the owner secret alone (identity §3). Frozen: a change orphans every row.
 */
import { createHmac } from "node:crypto";
import { digestOfBytes } from "../../shared/canonical.ts";
import type { AccountNkey, Digest, Owner, Space } from "../../shared/tokens.ts";

/** The owner of a person: what a provider calls its subject, bound to that provider. */
export function personOwner(secret: Uint8Array, issuer: string, subject: string): Owner {
  const mac = createHmac("sha256", secret)
    .update(`cotal-owner-v1:${JSON.stringify([issuer, subject])}`)
    .digest();
  // 16 bytes first, then base32: the last character holds 3 bits of them, not 5 bits of the whole MAC.
  return `u_${base32(mac.subarray(0, 16))}` as Owner;
}

/** The owner of the space's own platform manager. */
export function platformOwner(secret: Uint8Array, space: Space, account: AccountNkey): Owner {
  const mac = createHmac("sha256", secret).update(`cotal/platform-control-owner/v1\0${space}\0${account}`).digest();
  return `p_${base32(mac).slice(0, 26)}` as Owner;
}

/** What the `trust` row says of the secret, so that another one is noticed and none is revealed. */
export const ownerCommitment = (secret: Uint8Array): Digest =>
  digestOfBytes(Buffer.concat([Buffer.from("owner-secret-commitment/v1\0"), secret]));

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

/** Lower-case, unpadded. */
function base32(bytes: Uint8Array): string {
  let text = "";
  let held = 0;
  let bits = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET[(held >> (bits - 5)) & 31];
    held &= (1 << bits) - 1;
  }
  return bits > 0 ? text + ALPHABET[(held << (5 - bits)) & 31] : text;
}
