import { describe, expect, it } from "vitest";
import {
  activate,
  issuerDocument,
  newIssuer,
  publicKeys,
  publishNext,
  removeCompromised,
  retire,
  signingKey,
} from "../../../services/exchange/issuer-keys.ts";
import { Space } from "../../../shared/tokens.ts";

const space = Space.parse("demo");
const S = 1_000;
const start = 1_800_000_000_000;

describe("issuer keys", () => {
  it("are published without their private half and without any other member", async () => {
    const file = await newIssuer(space, start);
    expect(file).toMatchObject({ ver: 1, rev: 1, issuer: "urn:cotal:auth:demo" });
    const [key] = publicKeys(file);
    expect(Object.keys(key ?? {}).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x"]);
    expect(key).toMatchObject({ kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", kid: file.activeKid });
  });

  it("rotate by publishing, activating and retiring, each not too early", async () => {
    const first = await newIssuer(space, start);
    expect(() => activate(first, start)).toThrow("publish one first");
    const second = await publishNext(first, start);
    expect([second.rev, second.activeKid, publicKeys(second).length]).toEqual([2, first.activeKid, 2]);
    expect(() => activate(second, start + 364 * S)).toThrow("too recently");
    const third = activate(second, start + 365 * S);
    expect([third.rev, publicKeys(third).length]).toEqual([3, 2]);
    expect(third.activeKid).not.toBe(first.activeKid);
    expect((await signingKey(third, "issuer.json")).kid).toBe(third.activeKid);
    expect(() => retire(third, third.activeKid, start + 9_999 * S)).toThrow("cannot be retired");
    expect(() => retire(third, first.activeKid, start + (365 + 1_204) * S)).toThrow("may still be alive");
    const fourth = retire(third, first.activeKid, start + (365 + 1_205) * S);
    expect([fourth.rev, fourth.keys.map(({ kid }) => kid)]).toEqual([4, [third.activeKid]]);
    expect(() => retire(fourth, first.activeKid, start)).toThrow("no such key");
  });

  it("are at most three", async () => {
    const full = await publishNext(await publishNext(await newIssuer(space, start), start), start);
    await expect(publishNext(full, start)).rejects.toThrow("retire one first");
  });

  it("leave at once when compromised, even the active one", async () => {
    const alone = await newIssuer(space, start);
    const replaced = await removeCompromised(alone, alone.activeKid, start);
    expect(replaced.rev).toBe(2);
    expect(publicKeys(replaced).map(({ kid }) => kid)).toEqual([replaced.activeKid]);
    expect(replaced.activeKid).not.toBe(alone.activeKid);
    const two = await publishNext(alone, start);
    const taken = await removeCompromised(two, two.activeKid, start);
    expect(taken.keys).toHaveLength(1);
    expect(two.keys.map(({ kid }) => kid)).toContain(taken.activeKid);
  });

  it("are read from a file with a closed shape, and kids are thumbprints", async () => {
    const file = await newIssuer(space, start);
    expect(issuerDocument.decode("issuer.json", issuerDocument.encode(file))).toEqual(file);
    const decode = (changed: object) => issuerDocument.decode("issuer.json", Buffer.from(JSON.stringify(changed)));
    expect(() => decode({ ...file, ver: 2 })).toThrow("refuses the start");
    expect(() => decode({ ...file, more: 1 })).toThrow("refuses the start");
    expect(() => decode({ ...file, activeKid: "A".repeat(43) })).toThrow("refuses the start");
    expect(() => decode({ ...file, keys: [...file.keys, ...file.keys] })).toThrow("refuses the start");
    const [key] = file.keys;
    const renamed = { ...file, activeKid: "A".repeat(43), keys: [{ ...key, kid: "A".repeat(43) }] } as typeof file;
    await expect(signingKey(renamed, "issuer.json")).rejects.toThrow("refuses the start");
  });
});
