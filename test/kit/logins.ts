/** Proofs of login under a pinned key, of any content. */
import { generateKeyPairSync, sign } from "node:crypto";
import { personOwner } from "../../services/exchange/owner.ts";
import { loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import type { IdpPin } from "../../shared/secrets/pins.ts";
import type { Owner } from "../../shared/tokens.ts";
import type { TestSpace } from "./space.ts";

const pair = generateKeyPairSync("ed25519");
const ISSUER = "https://idp.example";
const AUDIENCE = "mesh";

export const pin = {
  url: ISSUER,
  issuer: ISSUER,
  audience: AUDIENCE,
  keys: [{ ...pair.publicKey.export({ format: "jwk" }), kid: "test" }] as IdpPin["keys"],
} satisfies IdpPin;

export const seconds = (): number => Math.floor(Date.now() / 1_000);

/** An ID token of 600 s; `more` stands over its claims, `head` over its header. Signed with the pin's key whatever they say. */
export function login(subject: string, more: object = {}, head: object = {}): string {
  const header = { alg: "EdDSA", kid: "test", ...head };
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: subject, iat: seconds(), exp: seconds() + 600, ...more };
  const text = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  return `${text}.${sign(null, Buffer.from(text), pair.privateKey).toString("base64url")}`;
}

/** Who that subject is, once the exchange has made its owner secret. */
export async function ownerOf({ secrets, space }: TestSpace, subject: string, issuer = ISSUER): Promise<Owner> {
  const { secretB64 } = await loadSecret(secrets, space, SECRET.ownerSecret);
  return personOwner(Buffer.from(secretB64, "base64"), issuer, subject);
}
