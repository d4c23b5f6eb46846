/** The JWTs of the operator and of every account, each in a file of its own, for whatever resolver (identity §1.4). */
import {
  type ClaimsDraft,
  decodeJwt,
  encodeJwt,
  type NatsBody,
  type NatsClaims,
} from "../../shared/credentials/jwt.ts";
import type { KeyPair } from "../../shared/credentials/nkeys.ts";
import type { Ports } from "../../shared/ports.ts";
import { refused } from "../../shared/secrets/document.ts";
import type { Folder } from "../../shared/secrets/folder.ts";

const OPERATOR_FILE = "broker/operator.jwt";
const accountFile = (pub: string): string => `broker/accounts/${pub}.jwt`;

/** A JWT as it stands and what it says. */
export interface Jwt {
  readonly text: string;
  readonly claims: NatsClaims;
}

/** Unix seconds, as JWTs count. */
export const seconds = (ports: Ports): number => Math.floor(ports.now() / 1_000);

export const readOperator = (folder: Folder): Promise<Jwt | undefined> => read(folder, OPERATOR_FILE);

export async function loadOperator(folder: Folder): Promise<Jwt> {
  return (await readOperator(folder)) ?? missing(folder, OPERATOR_FILE);
}

/** Keeps what is there; false if that is another one. */
export const keepOperator = (folder: Folder, jwt: () => string): Promise<boolean> => keep(folder, OPERATOR_FILE, jwt);

export const readAccount = (folder: Folder, pub: string): Promise<Jwt | undefined> => read(folder, accountFile(pub));

export async function loadAccount(folder: Folder, pub: string): Promise<Jwt> {
  const jwt = (await readAccount(folder, pub)) ?? missing(folder, accountFile(pub));
  if (jwt.claims.sub !== pub) throw refused(`${folder.path}/${accountFile(pub)}`, "is of another account");
  return jwt;
}

/** Keeps what is there; false if that is another one. */
export const keepAccount = (folder: Folder, pub: string, jwt: () => string): Promise<boolean> =>
  keep(folder, accountFile(pub), jwt);

/** Issues an account's JWT anew with another body; all else stays. */
export async function amendAccount(
  folder: Folder,
  pub: string,
  operator: KeyPair,
  ports: Ports,
  change: (nats: NatsBody) => NatsBody,
): Promise<void> {
  const { sub, name, aud, exp, nats } = (await loadAccount(folder, pub)).claims;
  const kept = Object.fromEntries(Object.entries({ name, aud, exp }).filter(([, value]) => value !== undefined));
  const draft: ClaimsDraft = { sub, iat: seconds(ports), ...kept, nats: change(nats) };
  await folder.replace(accountFile(pub), encoded(encodeJwt(draft, operator, ports)), "public");
}

async function read(folder: Folder, path: string): Promise<Jwt | undefined> {
  const bytes = await folder.read(path, "public");
  if (bytes === undefined) return undefined;
  const text = new TextDecoder().decode(bytes).trim();
  try {
    return { text, claims: decodeJwt(text) };
  } catch (cause) {
    throw refused(`${folder.path}/${path}`, "is no JWT", cause);
  }
}

async function keep(folder: Folder, path: string, jwt: () => string): Promise<boolean> {
  const present = await read(folder, path);
  if (present !== undefined) return present.text === jwt();
  return folder.create(path, encoded(jwt()), "public");
}

function missing(folder: Folder, path: string): never {
  throw refused(`${folder.path}/${path}`, "is not there");
}

const encoded = (text: string): Uint8Array => new TextEncoder().encode(`${text}\n`);
