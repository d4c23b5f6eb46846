import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createKeyPair, encodePublic, keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { open, seal, sharedKey } from "../../../shared/credentials/sealed.ts";
import vectors from "../../vectors/sealed-boxes.json" with { type: "json" };

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const base64 = (text: string) => new Uint8Array(Buffer.from(text, "base64url"));

describe("sealed boxes", () => {
  it.each(vectors.boxes)(
    "opens the known box, and seals it again byte for byte",
    ({ from, to, plainUtf8, sealedBase64Url }) => {
      const box = base64(sealedBase64Url);
      const plain = new TextEncoder().encode(plainUtf8);
      const key = sharedKey(keyPairFromSeed(to.seed), from.public);
      expect(Buffer.from(open(key, box) ?? "nothing").equals(plain)).toBe(true);
      expect(sharedKey(keyPairFromSeed(from.seed), to.public)).toEqual(key);
      expect(Buffer.from(seal(key, plain, box.subarray(4, 28))).equals(box)).toBe(true);
    },
  );

  it.each(vectors.refuse)("does not open: $why", ({ from, to, sealedBase64Url }) => {
    expect(open(sharedKey(keyPairFromSeed(to.seed), from.public), base64(sealedBase64Url))).toBeUndefined();
  });

  it("opens what it seals", () => {
    fc.assert(
      fc.property(bytes(32), bytes(24), fc.uint8Array({ maxLength: 300 }), (key, nonce, plain) => {
        expect(Buffer.from(open(key, seal(key, plain, nonce)) ?? "nothing").equals(plain)).toBe(true);
      }),
    );
  });

  it("opens nothing altered, nothing cut, no garbage", () => {
    fc.assert(
      fc.property(bytes(32), bytes(24), fc.uint8Array({ maxLength: 60 }), fc.nat(), (key, nonce, plain, at) => {
        const box = seal(key, plain, nonce);
        const altered = Uint8Array.from(box, (byte, i) => (i === at % box.length ? byte ^ 1 : byte));
        expect(open(key, altered)).toBeUndefined();
        expect(open(key, box.subarray(0, at % box.length))).toBeUndefined();
        expect(open(key, plain)).toBeUndefined();
      }),
    );
  });

  it("refuses a peer key of another kind, and one of low order", () => {
    const own = createKeyPair("curve");
    for (const peer of [createKeyPair("user").public, "", encodePublic("curve", new Uint8Array(32))]) {
      expect(() => sharedKey(own, peer)).toThrowError(expect.objectContaining({ code: "unauthenticated" }));
    }
  });
});
