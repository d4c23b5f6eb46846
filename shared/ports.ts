/** Clock, randomness and ids come in as one value, so that tests decide them. */
import { randomFillSync } from "node:crypto";
import type { Generation, Nonce, Uid } from "./tokens.ts";

export interface Ports {
  /** Unix milliseconds. */
  now(): number;
  /** Monotonic milliseconds, for waits and durations. */
  monotonic(): number;
  /** Waits `ms`; rejects with the signal's reason when it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** CSPRNG bytes. */
  random(bytes: number): Uint8Array;
}

export const systemPorts: Ports = { now: () => Date.now(), monotonic: () => performance.now(), sleep, random };

/** No `node:timers/promises`: every request ends a wait early, and there each such end makes two errors. */
function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const aborted = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, ms);
    signal?.addEventListener("abort", aborted, { once: true });
  });
}

/** Drawn ahead, as a draw of a few bytes costs as much as one of all these; none is given out twice or kept. */
const drawn = Buffer.alloc(4_096);
let given = drawn.length;

/** What keys are made of is drawn for itself, so that no key lies in memory before there is one. */
const KEY_BYTES = 32;

function random(bytes: number): Uint8Array {
  if (!Number.isSafeInteger(bytes) || bytes < 0) throw new RangeError("not a number of bytes");
  if (bytes >= KEY_BYTES) return randomFillSync(new Uint8Array(bytes));
  if (given + bytes > drawn.length) {
    randomFillSync(drawn);
    given = 0;
  }
  const own = Uint8Array.from(drawn.subarray(given, given + bytes));
  drawn.fill(0, given, given + bytes);
  given += bytes;
  return own;
}

/** 20 random bytes in base 36, left-padded to 26 characters (wire §1): lifecycle uid, instance id, operation id. */
export function newUid(ports: Ports): Uid {
  let value = 0n;
  for (const byte of ports.random(20)) value = (value << 8n) | BigInt(byte);
  return value.toString(36).padStart(26, "0") as Uid;
}

/** 16 random bytes, base64url. */
export function newNonce(ports: Ports): Nonce {
  return Buffer.from(ports.random(16)).toString("base64url") as Nonce;
}

/** 16 random bytes, 32 hex digits. */
export function newGeneration(ports: Ports): Generation {
  return Buffer.from(ports.random(16)).toString("hex") as Generation;
}

/** A uniform number in [0, 1). */
function randomFraction(ports: Ports): number {
  return Buffer.from(ports.random(4)).readUInt32BE() / 2 ** 32;
}

/** Full jitter of a doubling wait: attempt 0 waits up to `firstMs`. */
export function jitter(ports: Ports, wait: { firstMs: number; maxMs: number }, attempt: number): number {
  return randomFraction(ports) * Math.min(wait.maxMs, wait.firstMs * 2 ** Math.min(attempt, 30));
}
