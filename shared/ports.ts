/** Clock, randomness and ids come in as one value, so that tests decide them. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
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

export const systemPorts: Ports = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) => sleep(ms, undefined, signal ? { signal } : undefined),
  random: (bytes) => new Uint8Array(randomBytes(bytes)),
};

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
