/** The keys of `issuer.json` as they are used: one signs, all are published (identity §5). */
import { importJWK } from "jose";
import type { SigningKey } from "../../shared/bearer.ts";
import { internal } from "../../shared/errors.ts";
import type { IssuerFile } from "../../shared/secrets/issuer.ts";

/** A published key: these members and no other. */
export type PublicKey = {
  kty: "OKP";
  crv: "Ed25519";
  x: string;
  kid: string;
  alg: "EdDSA";
  use: "sig";
};

export const publicKeys = ({ keys }: IssuerFile): PublicKey[] =>
  keys.map(({ kid, privateJwk: { kty, crv, x } }) => ({ kty, crv, x, kid, alg: "EdDSA", use: "sig" }));

/** The key that signs now. */
export async function signingKey({ keys, activeKid }: IssuerFile): Promise<SigningKey> {
  const active = keys.find(({ kid }) => kid === activeKid);
  if (!active) throw internal("the active key is none of the issuer's"); // the file's own rule
  const privateKey = await importJWK(active.privateJwk, "EdDSA");
  if (privateKey instanceof Uint8Array) throw internal("the issuer's key is symmetric");
  return { kid: activeKid, privateKey };
}
