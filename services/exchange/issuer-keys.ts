/**
 * The keys that sign bearers, as `issuer.json` holds them, and the steps of their rotation (identity §5).
 * Every step is pure: a file in, the next file out, one `rev` higher.
 */
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from "jose";
import Type, { type Static } from "typebox";
import type { SigningKey } from "../../shared/bearer.ts";
import { AuthorityError } from "../../shared/errors.ts";
import { BEARER } from "../../shared/limits.ts";
import { document, refused } from "../../shared/secrets/document.ts";
import type { Space } from "../../shared/tokens.ts";

const closed = { additionalProperties: false } as const;
const Ms = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Base64url = Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" });

const IssuerKeySchema = Type.Object(
  {
    kid: Base64url,
    privateJwk: Type.Object(
      { kty: Type.Literal("OKP"), crv: Type.Literal("Ed25519"), x: Base64url, d: Base64url },
      closed,
    ),
    /** Unix milliseconds, like the two below. */
    publishedAt: Ms,
    activeAt: Type.Optional(Ms),
    stoppedAt: Type.Optional(Ms),
  },
  closed,
);
const IssuerSchema = Type.Object(
  {
    ver: Type.Literal(1),
    rev: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    issuer: Type.String({ pattern: "^urn:cotal:auth:[A-Za-z0-9_.-]{1,128}$" }),
    activeKid: Base64url,
    keys: Type.Array(IssuerKeySchema, { minItems: 1, maxItems: BEARER.maxKeys }),
  },
  closed,
);

export type IssuerKey = Static<typeof IssuerKeySchema>;
export type IssuerFile = Static<typeof IssuerSchema>;

export const issuerDocument = document(IssuerSchema, ({ keys, activeKid }) => {
  const kids = new Set(keys.map(({ kid }) => kid));
  if (kids.size < keys.length) return "/keys names one kid twice";
  return kids.has(activeKid) ? undefined : "/activeKid names no key";
});

/** A published key: these members and no other. */
export type PublicKey = {
  kty: "OKP";
  crv: "Ed25519";
  x: string;
  kid: string;
  alg: "EdDSA";
  use: "sig";
};

export const publicKeys = (file: IssuerFile): PublicKey[] =>
  file.keys.map(({ kid, privateJwk: { kty, crv, x } }) => ({ kty, crv, x, kid, alg: "EdDSA", use: "sig" }));

/** The first key of a space. */
export async function newIssuer(space: Space, now: number): Promise<IssuerFile> {
  const key = { ...(await newKey(now)), activeAt: now };
  return { ver: 1, rev: 1, issuer: `urn:cotal:auth:${space}`, activeKid: key.kid, keys: [key] };
}

/** The key that signs now; refuses a file whose kid is not its key's thumbprint. */
export async function signingKey(file: IssuerFile, location: string): Promise<SigningKey> {
  for (const { kid, privateJwk } of file.keys) {
    if ((await calculateJwkThumbprint(privateJwk)) !== kid)
      throw refused(location, "a kid is not its key's thumbprint");
  }
  const active = file.keys.find(({ kid }) => kid === file.activeKid);
  if (!active) throw refused(location, "/activeKid names no key");
  return { kid: active.kid, privateKey: await importPrivate(active.privateJwk) };
}

/** `--next`: one more key, published and not yet signing. */
export async function publishNext(file: IssuerFile, now: number): Promise<IssuerFile> {
  if (file.keys.length >= BEARER.maxKeys) throw early("there are already three keys, retire one first");
  return { ...file, rev: file.rev + 1, keys: [...file.keys, await newKey(now)] };
}

/** `--activate`: the published key signs, once every verifier must know it; the former stays published. */
export function activate(file: IssuerFile, now: number): IssuerFile {
  const next = file.keys.find(({ activeAt }) => activeAt === undefined);
  if (!next) throw early("there is no key to activate, publish one first");
  if (now < next.publishedAt + BEARER.activateAfterS * 1_000) throw early("the key was published too recently");
  return signWith(file, next.kid, now);
}

/** `--retire`: the key leaves, once no bearer of it can be alive; never the active one. */
export function retire(file: IssuerFile, kid: string, now: number): IssuerFile {
  const key = named(file, kid);
  if (kid === file.activeKid) throw early("the active key cannot be retired");
  if (key.stoppedAt !== undefined && now < key.stoppedAt + BEARER.retireAfterS * 1_000) {
    throw early("bearers of this key may still be alive");
  }
  return without(file, kid);
}

/** `--compromised`: the key leaves at once. If it was the active one, a key that never signed takes over. */
export async function removeCompromised(file: IssuerFile, kid: string, now: number): Promise<IssuerFile> {
  named(file, kid);
  if (kid !== file.activeKid) return without(file, kid);
  const left = file.keys.filter((key) => key.kid !== kid);
  const unused = left.find(({ activeAt }) => activeAt === undefined) ?? (await newKey(now));
  const keys = [...left.filter((key) => key !== unused), { ...unused, activeAt: now }];
  return { ...file, rev: file.rev + 1, activeKid: unused.kid, keys };
}

function signWith(file: IssuerFile, kid: string, now: number): IssuerFile {
  const keys = file.keys.map((key) => {
    if (key.kid === kid) return { ...key, activeAt: now };
    return key.kid === file.activeKid ? { ...key, stoppedAt: now } : key;
  });
  return { ...file, rev: file.rev + 1, activeKid: kid, keys };
}

const without = (file: IssuerFile, kid: string): IssuerFile => ({
  ...file,
  rev: file.rev + 1,
  keys: file.keys.filter((key) => key.kid !== kid),
});

function named(file: IssuerFile, kid: string): IssuerKey {
  const key = file.keys.find((one) => one.kid === kid);
  if (!key) throw new AuthorityError("not-found", "there is no such key");
  return key;
}

const early = (why: string): AuthorityError => new AuthorityError("failed-precondition", why);

async function newKey(now: number): Promise<IssuerKey> {
  const { privateKey } = await generateKeyPair("EdDSA", { extractable: true });
  const { x, d } = await exportJWK(privateKey);
  if (x === undefined || d === undefined) throw new TypeError("a generated key has no halves");
  const privateJwk = { kty: "OKP", crv: "Ed25519", x, d } as const;
  return { kid: await calculateJwkThumbprint(privateJwk), privateJwk, publishedAt: now };
}

async function importPrivate(jwk: JWK): Promise<CryptoKey> {
  const key = await importJWK(jwk, "EdDSA");
  if (key instanceof Uint8Array) throw new TypeError("a symmetric key");
  return key;
}
