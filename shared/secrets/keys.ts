/** Every file under `auth/space.<hex>/`, and which service loads which (identity §1.1). */
import Type, { type Static } from "typebox";
import { type Creds, parseCreds } from "../credentials/creds.ts";
import { decodeJwt } from "../credentials/jwt.ts";
import { decodeSeed, isPublicKey, type KeyKind, keyPairFromSeed } from "../credentials/nkeys.ts";
import { forEveryUser, type UserName } from "../credentials/users.ts";
import { textOf } from "../errors.ts";
import type { Ports } from "../ports.ts";
import { AccountNkey, type Space, UserNkey } from "../tokens.ts";
import { type Document, document, refused } from "./document.ts";
import { issuerDocument } from "./issuer.ts";
import { adoptOrCreate, type SecretStore, secretKey } from "./store.ts";

const closed = { additionalProperties: false } as const;
const Ver = Type.Literal(1);
const Seed = Type.String({ pattern: "^S[A-Z2-7]{57}$" });
const CurveNkey = Type.String({ pattern: "^X[A-Z2-7]{55}$" });

/** Readable by all: it has public keys alone. */
export const PUBLIC_FILE = "public.json";

const ServiceKeys = Type.Object(
  {
    ver: Ver,
    /** `pub` is the account itself; the seed one of its signing keys. `previousSeed` still verifies. */
    dataAccount: Type.Object({ pub: AccountNkey.schema, signingSeed: Seed, previousSeed: Type.Optional(Seed) }, closed),
    authorityAccount: Type.Object({ pub: AccountNkey.schema, signingSeed: Seed }, closed),
  },
  closed,
);
export type ServiceKeys = Static<typeof ServiceKeys>;

const PublicKeys = Type.Object(
  {
    ver: Ver,
    accounts: Type.Object(
      { space: AccountNkey.schema, callout: AccountNkey.schema, authority: AccountNkey.schema },
      closed,
    ),
    users: Type.Object(
      forEveryUser(() => UserNkey.schema),
      closed,
    ),
  },
  closed,
);
export type PublicKeys = Static<typeof PublicKeys>;

const CalloutKeys = Type.Object(
  {
    ver: Ver,
    account: Type.Object({ pub: AccountNkey.schema, signingPub: AccountNkey.schema, signingSeed: Seed }, closed),
    calloutCreds: Type.String({ maxLength: 32_768 }),
    xkey: Type.Object({ pub: CurveNkey, seed: Seed }, closed),
  },
  closed,
);
export type CalloutKeys = Static<typeof CalloutKeys>;

/** Exactly 32 bytes, from which every owner is derived (identity §3). */
const OwnerSecret = Type.Object(
  { ver: Ver, secretB64: Type.String({ pattern: "^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$" }) },
  closed,
);
export type OwnerSecret = Static<typeof OwnerSecret>;

/** One file of a space in the store, and what may stand in it. */
export interface SecretFile<V> {
  readonly file: string;
  readonly document: Document<V>;
}

/** Every JSON file. `creds` of a provisioned user are at `<name>.creds`, the callout's own in `calloutKeys`. */
export const SECRET = {
  serviceKeys: { file: "service-keys.json", document: document(ServiceKeys, serviceKeysFault) },
  publicKeys: { file: PUBLIC_FILE, document: document(PublicKeys, publicKeysFault) },
  calloutKeys: { file: "callout.json", document: document(CalloutKeys, calloutKeysFault) },
  issuer: { file: "issuer.json", document: issuerDocument },
  ownerSecret: { file: "owner-secret.json", document: document(OwnerSecret) },
} as const;

/**
 * The content of a file, undefined if there is none. What does not fit refuses, naming the key.
 *
 *     const keys = await readSecret(store, space, SECRET.serviceKeys);
 */
export async function readSecret<V>(
  store: Pick<SecretStore, "get">,
  space: Space,
  secret: SecretFile<V>,
): Promise<V | undefined> {
  const key = secretKey(space, secret.file);
  const bytes = await store.get(key);
  return bytes && secret.document.decode(key, bytes);
}

/** As `readSecret`, but a file that is not there refuses too. */
export async function loadSecret<V>(store: Pick<SecretStore, "get">, space: Space, secret: SecretFile<V>): Promise<V> {
  const content = await readSecret(store, space, secret);
  if (content === undefined) throw refused(secretKey(space, secret.file), "is not there");
  return content;
}

/** First use: the content that is there, or the generated one unless somebody else was faster (identity §1.3). */
export async function adoptSecret<V>(
  store: Pick<SecretStore, "get" | "create">,
  space: Space,
  secret: SecretFile<V>,
  generate: () => V,
): Promise<V> {
  const key = secretKey(space, secret.file);
  return secret.document.decode(key, await adoptOrCreate(store, key, () => secret.document.encode(generate())));
}

/** Only rotation calls it. */
export async function replaceSecret<V>(
  store: Pick<SecretStore, "put">,
  space: Space,
  secret: SecretFile<V>,
  value: V,
): Promise<void> {
  await store.put(secretKey(space, secret.file), secret.document.encode(value));
}

/** Where a provisioned user's creds are. Those of `callout` are part of `callout.json`. */
export const credsFile = (name: Exclude<UserName, "callout">): string => `${name}.creds`;

/** The creds of a provisioned user, undefined if there are none. */
export async function readCreds(
  store: Pick<SecretStore, "get">,
  space: Space,
  name: Exclude<UserName, "callout">,
): Promise<Creds | undefined> {
  const key = secretKey(space, credsFile(name));
  const bytes = await store.get(key);
  return bytes && decodeCreds(key, new TextDecoder().decode(bytes));
}

export async function loadCreds(
  store: Pick<SecretStore, "get">,
  space: Space,
  name: Exclude<UserName, "callout">,
): Promise<Creds> {
  const creds = await readCreds(store, space, name);
  if (creds === undefined) throw refused(secretKey(space, credsFile(name)), "is not there");
  return creds;
}

/** The creds that are there, or the generated ones unless somebody else was faster. */
export async function adoptCreds(
  store: Pick<SecretStore, "get" | "create">,
  space: Space,
  name: Exclude<UserName, "callout">,
  generate: () => string,
): Promise<Creds> {
  const key = secretKey(space, credsFile(name));
  const bytes = await adoptOrCreate(store, key, () => new TextEncoder().encode(generate()));
  return decodeCreds(key, new TextDecoder().decode(bytes));
}

/** Only rotation calls it. */
export async function replaceCreds(
  store: Pick<SecretStore, "put">,
  space: Space,
  name: Exclude<UserName, "callout">,
  text: string,
): Promise<void> {
  await store.put(secretKey(space, credsFile(name)), new TextEncoder().encode(text));
}

export function decodeCreds(location: string, text: string): Creds {
  try {
    return parseCreds(text);
  } catch (cause) {
    throw refused(location, textOf(cause), cause);
  }
}

/** 32 fresh bytes; generated by the first exchange, never replaced (identity §1.3). */
export function newOwnerSecret(ports: Pick<Ports, "random">): OwnerSecret {
  return { ver: 1, secretB64: Buffer.from(ports.random(32)).toString("base64") };
}

/** What each service, gateway face or tool of ours loads, and nothing else. */
export const VIEWS = {
  auth: ["service-keys.json", PUBLIC_FILE],
  exchange: [PUBLIC_FILE, "issuer.json", "owner-secret.json", "exchange.creds", "exchange_store.creds"],
  callout: ["service-keys.json", "callout.json"],
  custodian: [PUBLIC_FILE, "custodian.creds", "custodian_system.creds"],
  gateway_public: ["gateway_public.creds"],
  gateway_loopback: ["gateway_loopback.creds"],
  operator: ["operator.creds", "operator_callout.creds"],
  platform_host: ["platform_host.creds"],
} as const satisfies Record<string, readonly string[]>;

/** The keys of a view in a state folder. */
export const viewKeys = (space: Space, view: keyof typeof VIEWS): string[] =>
  VIEWS[view].map((file) => secretKey(space, file));

/** What a host without a state folder keeps in its store besides: the public files, and the instance of `auth` (lifecycles §8.5). */
export const hostedKeys = (space: Space, slot: string): string[] =>
  ["space.json", "idp.json", "sentinel.creds", `instance.auth.${slot}.json`].map((file) => secretKey(space, file));

const isSeed = (text: string, kind: KeyKind): boolean => decodeSeed(text)?.kind === kind;

function serviceKeysFault({ dataAccount, authorityAccount }: ServiceKeys): string | undefined {
  for (const [path, { pub, signingSeed }] of Object.entries({ dataAccount, authorityAccount })) {
    if (!isPublicKey(pub, "account")) return `/${path}/pub is no account nkey`;
    if (!isSeed(signingSeed, "account")) return `/${path}/signingSeed is no account seed`;
    if (keyPairFromSeed(signingSeed).public === pub) return `/${path}/signingSeed is of the account itself`;
  }
  const { previousSeed } = dataAccount;
  return previousSeed === undefined || isSeed(previousSeed, "account")
    ? undefined
    : "/dataAccount/previousSeed is no account seed";
}

function publicKeysFault({ accounts, users }: PublicKeys): string | undefined {
  for (const [name, pub] of Object.entries(accounts)) {
    if (!isPublicKey(pub, "account")) return `/accounts/${name} is no account nkey`;
  }
  for (const [name, nkey] of Object.entries(users))
    if (!isPublicKey(nkey, "user")) return `/users/${name} is no user nkey`;
  const all = [...Object.values(accounts), ...Object.values(users)];
  return new Set(all).size === all.length ? undefined : "/ has one key under two names";
}

function calloutKeysFault({ account, calloutCreds, xkey }: CalloutKeys): string | undefined {
  if (!isPublicKey(account.pub, "account")) return "/account/pub is no account nkey";
  if (!isSeed(account.signingSeed, "account") || keyPairFromSeed(account.signingSeed).public !== account.signingPub) {
    return "/account/signingSeed is not of signingPub";
  }
  if (!isSeed(xkey.seed, "curve") || keyPairFromSeed(xkey.seed).public !== xkey.pub) return "/xkey/seed is not of pub";
  try {
    const { nats } = decodeJwt(parseCreds(calloutCreds).jwt);
    return nats.issuer_account === account.pub ? undefined : "/calloutCreds are of another account";
  } catch {
    return "/calloutCreds are malformed";
  }
}
