import { inspect } from "node:util";
import { fromPublic, fromSeed } from "@nats-io/nkeys";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createKeyPair,
  decodePublic,
  decodeSeed,
  encodePublic,
  encodeSeed,
  isPublicKey,
  type KeyKind,
  keyPairFromSeed,
  verify,
} from "../../../shared/credentials/nkeys.ts";
import vectors from "../../vectors/nkeys.json" with { type: "json" };

const kinds: KeyKind[] = ["operator", "account", "user", "server", "curve"];
const key = fc.record({ kind: fc.constantFrom(...kinds), bytes: fc.uint8Array({ minLength: 32, maxLength: 32 }) });
const utf8 = (text: string) => new TextEncoder().encode(text);

describe("nkeys", () => {
  it.each(vectors.keys)("derives $public from its seed", ({ kind, seed, public: expected }) => {
    const pair = keyPairFromSeed(seed);
    expect(pair).toMatchObject({ kind, public: expected, seed });
    expect(isPublicKey(expected, kind as KeyKind)).toBe(true);
  });

  it("signs as the known answer says", () => {
    const { seed, public: publicKey, messageUtf8, signatureBase64Url } = vectors.signature;
    const signature = keyPairFromSeed(seed).sign(utf8(messageUtf8));
    expect(Buffer.from(signature).toString("base64url")).toBe(signatureBase64Url);
    expect(verify(publicKey, utf8(messageUtf8), signature)).toBe(true);
    expect(verify(publicKey, utf8(`${messageUtf8}.`), signature)).toBe(false);
  });

  it.each(vectors.invalid)("refuses as a user's public key: $why", ({ value }) => {
    expect(isPublicKey(value, "user")).toBe(false);
  });

  it.each(vectors.invalid)("refuses as a seed or verifies nothing: $why", ({ value }) => {
    expect(verify(value, utf8("x"), new Uint8Array(64))).toBe(false);
    if (!value.startsWith("SU")) expect(() => keyPairFromSeed(value)).toThrow("malformed nkey seed");
  });

  it("decodes what it encodes, public keys and seeds of every kind", () => {
    fc.assert(
      fc.property(key, ({ kind, bytes }) => {
        expect(decodePublic(encodePublic(kind, bytes))).toEqual({ kind, bytes });
        expect(decodeSeed(encodeSeed(kind, bytes))).toEqual({ kind, bytes });
      }),
    );
  });

  it("never parses a text with one letter changed, cut or added", () => {
    const change = fc.record({ at: fc.nat(57), letter: fc.constantFrom(..."ABCDEFGHIJKLMNOPQRSTUVWXYZ2345678 =a") });
    fc.assert(
      fc.property(key, change, ({ kind, bytes }, { at, letter }) => {
        for (const text of [encodePublic(kind, bytes), encodeSeed(kind, bytes)]) {
          const altered = text.slice(0, at) + letter + text.slice(at + 1);
          if (altered === text) continue;
          for (const bad of [
            altered,
            text.slice(1),
            text.slice(0, -1),
            text + letter,
            ` ${text}`,
            text.toLowerCase(),
          ]) {
            expect([decodePublic(bad), decodeSeed(bad)]).toEqual([undefined, undefined]);
          }
        }
      }),
    );
  });

  it("never parses garbage", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.stringMatching(/^[A-Z2-7]{56}$/), fc.stringMatching(/^S[A-Z2-7]{57}$/)),
        (text) => {
          const parsed = decodePublic(text) ?? decodeSeed(text);
          // A random text passes a 16-bit checksum once in 65,536 times; then it must at least be the canonical text.
          if (parsed)
            expect([encodePublic(parsed.kind, parsed.bytes), encodeSeed(parsed.kind, parsed.bytes)]).toContain(text);
        },
      ),
    );
  });

  it("agrees with the public library both ways", () => {
    const data = utf8("nonce");
    for (const kind of kinds.filter((one) => one !== "curve")) {
      const ours = createKeyPair(kind);
      const theirs = fromSeed(utf8(ours.seed));
      expect(theirs.getPublicKey()).toBe(ours.public);
      expect(fromPublic(ours.public).verify(data, ours.sign(data))).toBe(true);
      expect(verify(ours.public, data, theirs.sign(data))).toBe(true);
    }
  });

  it("does not sign with a curve key, and verifies nothing under one", () => {
    const pair = createKeyPair("curve");
    expect(() => pair.sign(utf8("x"))).toThrow("internal error");
    expect(verify(pair.public, utf8("x"), new Uint8Array(64))).toBe(false);
  });

  it("shows no seed when printed", () => {
    const pair = createKeyPair("user");
    expect(JSON.stringify(pair) + inspect(pair, { depth: 9, showHidden: true })).not.toContain(pair.seed);
  });
});
