import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ownerCommitment, personOwner, platformOwner } from "../../../services/exchange/owner.ts";
import { AccountNkey, Owner, Space } from "../../../shared/tokens.ts";

const vectors = JSON.parse(readFileSync(new URL("../../vectors/owners.json", import.meta.url), "utf8"));
const secret = Buffer.from(vectors.secretHex, "hex");

describe("owners", () => {
  it.each<{ issuer: string; subject: string; owner: string }>(vectors.persons)(
    "derives $owner from $issuer and $subject",
    ({ issuer, subject, owner }) => {
      expect(personOwner(secret, issuer, subject)).toBe(owner);
      expect(Owner.is(owner)).toBe(true);
    },
  );

  it.each<{ space: string; account: string; owner: string }>(vectors.platforms)(
    "derives the platform owner of $space",
    ({ space, account, owner }) => {
      expect(platformOwner(secret, Space.parse(space), AccountNkey.parse(account))).toBe(owner);
    },
  );

  it("keeps quotes in a subject from passing as another issuer and subject", () => {
    const one = personOwner(secret, "https://idp.example", 'a","b');
    expect(personOwner(secret, 'https://idp.example","a', "b")).not.toBe(one);
  });

  it("commits to the secret without repeating it", () => {
    const commitment = ownerCommitment(secret);
    expect(commitment).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(ownerCommitment(Buffer.alloc(32))).not.toBe(commitment);
  });
});
