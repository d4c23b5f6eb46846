/**
 * nkeys on native cryptography (architecture §7): the library's own signing is pure JavaScript and hundreds of times slower.
 *
 * Text form: base32 of prefix byte(s), 32 key bytes and a little-endian CRC-16 of both.
 */
import {
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes,
} from "node:crypto";
import { AuthorityError, internal } from "../errors.ts";
import { type Ports, systemPorts } from "../ports.ts";

/** What a key may be, with the prefix byte that makes its first letter: O, A, U, N, X. */
const PREFIXES = { operator: 14 << 3, account: 0, user: 20 << 3, server: 13 << 3, curve: 23 << 3 } as const;
const SEED_PREFIX = 18 << 3;
const KEY_BYTES = 32;

export type KeyKind = keyof typeof PREFIXES;

/** A key with its private half. The seed leaves only by the property: neither JSON nor a log prints it. */
export interface KeyPair {
  readonly kind: KeyKind;
  readonly public: string;
  readonly seed: string;
  /** The 64-byte Ed25519 signature. A curve key does not sign: `internal`. */
  sign(data: Uint8Array): Uint8Array;
}

/** A fresh key pair of that kind. */
export function createKeyPair(kind: KeyKind, ports: Pick<Ports, "random"> = systemPorts): KeyPair {
  return new NativeKeyPair(kind, ports.random(KEY_BYTES));
}

/** Throws `bad-request` on anything but a well-formed seed; the text is never echoed. */
export function keyPairFromSeed(seed: string): KeyPair {
  const decoded = decodeSeed(seed);
  if (decoded === undefined) throw new AuthorityError("bad-request", "malformed nkey seed");
  return new NativeKeyPair(decoded.kind, decoded.bytes);
}

/** Whether `signature` is the Ed25519 signature of `data` under an operator, account, user or server key. */
export function verify(publicKey: string, data: Uint8Array, signature: Uint8Array): boolean {
  const decoded = decodePublic(publicKey);
  if (decoded === undefined || decoded.kind === "curve") return false;
  try {
    return verifyBytes(null, data, ed25519Public(decoded.bytes), signature);
  } catch {
    return false; // the bytes are no point of the curve
  }
}

/** The kind and the 32 bytes of a public key, or undefined if the text is not exactly one. */
export function decodePublic(text: string): { kind: KeyKind; bytes: Uint8Array } | undefined {
  const raw = decodeChecked(text, 1 + KEY_BYTES);
  const kind = raw && kindOf(raw[0]);
  return raw && kind && { kind, bytes: raw.subarray(1) };
}

/** Whether the text is a public key of that kind, checksum included. */
export function isPublicKey(text: unknown, kind: KeyKind): text is string {
  return typeof text === "string" && decodePublic(text)?.kind === kind;
}

export function encodePublic(kind: KeyKind, bytes: Uint8Array): string {
  return encodeChecked(Uint8Array.of(PREFIXES[kind], ...bytes));
}

/** The kind and the 32 bytes of a seed, or undefined if the text is not exactly one. */
export function decodeSeed(text: string): { kind: KeyKind; bytes: Uint8Array } | undefined {
  const raw = decodeChecked(text, 2 + KEY_BYTES);
  if (raw === undefined) return undefined;
  // Two prefixes share 16 bits so that both show as letters: 5 bits "S", 8 bits kind, 3 bits zero.
  const head = ((raw[0] ?? 0) << 8) | (raw[1] ?? 0);
  if ((head >> 8) - ((head >> 8) & 7) !== SEED_PREFIX || (head & 7) !== 0) return undefined;
  const kind = kindOf((head >> 3) & 0xff);
  return kind && { kind, bytes: raw.subarray(2) };
}

export function encodeSeed(kind: KeyKind, bytes: Uint8Array): string {
  const head = (SEED_PREFIX << 8) | (PREFIXES[kind] << 3);
  return encodeChecked(Uint8Array.of(head >> 8, head & 0xff, ...bytes));
}

/** The private X25519 key object of a curve key pair, for `sealed.ts` alone. */
export function curvePrivateKey(pair: KeyPair): KeyObject {
  const decoded = decodeSeed(pair.seed);
  if (decoded?.kind !== "curve") throw internal(`a curve key is needed, this one is of an ${pair.kind}`);
  return privateKey("curve", decoded.bytes);
}

class NativeKeyPair implements KeyPair {
  readonly kind: KeyKind;
  readonly public: string;
  readonly #seed: string;
  readonly #key: KeyObject;

  constructor(kind: KeyKind, bytes: Uint8Array) {
    this.kind = kind;
    this.#seed = encodeSeed(kind, bytes);
    this.#key = privateKey(kind, bytes); // once: building it costs more than a signature
    const { x } = createPublicKey(this.#key).export({ format: "jwk" });
    if (x === undefined) throw internal("a key without public half");
    this.public = encodePublic(kind, Buffer.from(x, "base64url"));
  }

  get seed(): string {
    return this.#seed;
  }

  sign(data: Uint8Array): Uint8Array {
    if (this.kind === "curve") throw internal("a curve key does not sign");
    return signBytes(null, data, this.#key);
  }
}

/** PKCS #8 of RFC 8410 up to the key itself: version 0, OID 1.3.101.110 or .112, octet string in an octet string. */
const PKCS8 = {
  x25519: Buffer.from("302e020100300506032b656e04220420", "hex"),
  ed25519: Buffer.from("302e020100300506032b657004220420", "hex"),
} as const;

function privateKey(kind: KeyKind, bytes: Uint8Array): KeyObject {
  const head = kind === "curve" ? PKCS8.x25519 : PKCS8.ed25519;
  return createPrivateKey({ key: Buffer.concat([head, bytes]), format: "der", type: "pkcs8" });
}

function ed25519Public(bytes: Uint8Array): KeyObject {
  const x = Buffer.from(bytes).toString("base64url");
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
}

function kindOf(prefix: number | undefined): KeyKind | undefined {
  for (const kind of Object.keys(PREFIXES) as KeyKind[]) if (PREFIXES[kind] === prefix) return kind;
  return undefined;
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

function encodeChecked(payload: Uint8Array): string {
  const check = crc16(payload);
  let text = "";
  let bits = 0;
  let held = 0;
  for (const byte of [...payload, check & 0xff, check >> 8]) {
    held = (held << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET[(held >> (bits - 5)) & 31];
    held &= (1 << bits) - 1;
  }
  return bits > 0 ? text + ALPHABET[(held << (5 - bits)) & 31] : text;
}

/** The payload of exactly `length` bytes, or undefined: another length or alphabet, slack bits, a wrong checksum. */
function decodeChecked(text: string, length: number): Uint8Array | undefined {
  if (text.length !== Math.ceil(((length + 2) * 8) / 5)) return undefined;
  const raw: number[] = [];
  let bits = 0;
  let held = 0;
  for (const letter of text) {
    const value = ALPHABET.indexOf(letter);
    if (value < 0) return undefined;
    held = (held << 5) | value;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      raw.push(held >> bits);
      held &= (1 << bits) - 1;
    }
  }
  if (held !== 0) return undefined; // two texts would name one key
  const payload = Uint8Array.from(raw.slice(0, length));
  const check = crc16(payload);
  return raw[length] === (check & 0xff) && raw[length + 1] === check >> 8 ? payload : undefined;
}

/** CRC-16/XMODEM: polynomial 0x1021, start 0. */
function crc16(data: Uint8Array): number {
  let crc = 0;
  for (const byte of data) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc;
}
