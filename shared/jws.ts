/** A compact JWS taken apart, before anything that it says is believed. */
import { type Json, parseStrict } from "./canonical.ts";
import type { JsonObject } from "./envelope.ts";
import { AuthorityError, textOf } from "./errors.ts";
import { WIRE } from "./limits.ts";

export interface CompactJws {
  readonly header: JsonObject;
  /** The payload's JSON object. Unverified unless the signature was. */
  payload(): JsonObject;
  /** Hands over what was signed and the signature. */
  signedBy(verify: (data: Uint8Array, signature: Uint8Array) => boolean): boolean;
}

/** A verification that failed; the sentence says no more to the one who presented it. */
export class BadToken extends Error {}

// Strict where decoders are lenient: no padding, no blanks, no segment of an impossible length.
const COMPACT = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/;

/** Throws `BadToken` on anything but three base64url segments, the first a JSON object. */
export function takeApart(text: string, maxBytes: number): CompactJws {
  if (text.length > maxBytes) throw new BadToken("too long");
  const [, header, payload, signature] = COMPACT.exec(text) ?? [];
  if (header === undefined || payload === undefined || signature === undefined) throw new BadToken("not a compact JWS");
  return {
    header: jsonObject(header, "header"),
    payload: () => jsonObject(payload, "payload"),
    signedBy: (verify) => verify(Buffer.from(`${header}.${payload}`), Buffer.from(signature, "base64url")),
  };
}

function jsonObject(segment: string, name: string): JsonObject {
  if (segment.length % 4 === 1) throw new BadToken(`${name}: not base64url`);
  const bytes = Buffer.from(segment, "base64url");
  let value: Json;
  try {
    value = parseStrict(bytes, { maxBytes: bytes.length, maxDepth: WIRE.maxDepth });
  } catch (cause) {
    throw new BadToken(`${name}: ${textOf(cause)}`, { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new BadToken(`${name}: no object`);
  return value;
}

/** One public sentence for every way a proof can fail; why goes to the log. */
export const unauthenticated = (what: string, cause: unknown): AuthorityError =>
  new AuthorityError("unauthenticated", `the ${what} is not valid`, { reason: textOf(cause), cause });
