/** RFC 8785 canonical JSON, strict JSON parsing (I-JSON, RFC 7493), and the digests built on them. */
import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { AuthorityError } from "./errors.ts";
import type { CredentialId, Digest } from "./tokens.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** The RFC 8785 text of a value. Throws on what JSON cannot carry. */
export function canonicalText(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError("value has no canonical JSON form");
  return text;
}

export function canonicalBytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(canonicalText(value));
}

export const sha256Hex = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex");

/** `sha256:<hex>` over the RFC 8785 bytes of a document (wire §6, artifact digest). */
export const digestOf = (value: unknown): Digest => `sha256:${sha256Hex(canonicalBytes(value))}` as Digest;

/** `sha256:<hex>` over bytes as they are. */
export const digestOfBytes = (data: string | Uint8Array): Digest => `sha256:${sha256Hex(data)}` as Digest;

/** The bare 64 hex digits that stand in `epc` subjects. */
export const bareDigest = (digest: Digest): string => digest.slice("sha256:".length);

/** A ledgered credential is named by the bytes of its JWT. */
export const credentialIdOf = (jwt: string): CredentialId => `sha256-${sha256Hex(jwt)}` as CredentialId;

export interface ParseLimits {
  readonly maxBytes: number;
  readonly maxDepth: number;
}

/**
 * Parses JSON from an untrusted peer. Refuses bad UTF-8, duplicate member names, lone surrogates, numbers beyond every
 * double, depth and size over the limits, all as `bad-request` without echoing a byte of the input.
 */
export function parseStrict(data: Uint8Array, limits: ParseLimits): Json {
  if (data.length > limits.maxBytes) {
    throw new AuthorityError("bad-request", `the body is larger than ${limits.maxBytes} bytes`);
  }
  if (!isUtf8(data)) throw new AuthorityError("bad-request", "the body is not UTF-8");
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
  guard(text, limits.maxDepth);
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch {
    throw new AuthorityError("bad-request", "the body is not JSON");
  }
  return value;
}

/** One pass over the text before `JSON.parse`: nesting depth, duplicate members, lone surrogates, endless numbers. */
function guard(text: string, maxDepth: number): void {
  const members: (Set<string> | undefined)[] = [];
  // Without an escape a string is what stands between its quotes, and UTF-8 has no lone surrogate.
  const escapes = text.includes("\\");
  let i = 0;
  let expectName = false;
  while (i < text.length) {
    const c = text.charCodeAt(i);
    if (c === 0x22) {
      const end = escapes ? endOfString(text, i) : text.indexOf('"', i + 1);
      if (end < 0) throw new AuthorityError("bad-request", "the body is not JSON");
      const names = expectName ? members.at(-1) : undefined;
      if (escapes || names) {
        const value = escapes ? decodeString(text.slice(i, end + 1)) : text.slice(i + 1, end);
        if (!value.isWellFormed()) throw new AuthorityError("bad-request", "the body has a lone surrogate");
        if (names?.has(value)) throw new AuthorityError("bad-request", "the body repeats a member name");
        names?.add(value);
      }
      expectName = false;
      i = end + 1;
      continue;
    }
    if (c >= 0x30 && c <= 0x39) {
      const end = endOfNumber(text, i);
      if (Number(text.slice(i, end)) === Number.POSITIVE_INFINITY) {
        throw new AuthorityError("bad-request", "the body has a number beyond every double");
      }
      i = end;
      continue;
    }
    if (c === 0x7b || c === 0x5b) {
      if (members.length >= maxDepth) throw new AuthorityError("bad-request", `the body nests deeper than ${maxDepth}`);
      members.push(c === 0x7b ? new Set() : undefined);
      expectName = c === 0x7b;
    } else if (c === 0x7d || c === 0x5d) {
      members.pop();
      expectName = false;
    } else if (c === 0x2c) {
      expectName = members.at(-1) !== undefined;
    }
    i += 1;
  }
}

function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i += 1) {
    const c = text.charCodeAt(i);
    if (c === 0x5c) i += 1;
    else if (c === 0x22) return i;
  }
  return -1;
}

/** Behind the digits, the fraction and the exponent; whether they stand in order is for `JSON.parse` to say. */
function endOfNumber(text: string, start: number): number {
  NUMBER.lastIndex = start;
  NUMBER.test(text);
  return NUMBER.lastIndex;
}

/** From a digit on it always matches. */
const NUMBER = /[0-9.eE+-]+/y;

function decodeString(raw: string): string {
  try {
    return JSON.parse(raw);
  } catch {
    throw new AuthorityError("bad-request", "the body is not JSON");
  }
}
