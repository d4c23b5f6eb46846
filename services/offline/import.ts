/** `init --import <dir>`: an operator, system account and optionally a space account made elsewhere (identity §1.4). */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { decodeJwt, type NatsClaims } from "../../shared/credentials/jwt.ts";
import { type KeyKind, keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { refused } from "../../shared/secrets/document.ts";

export interface ImportedKey {
  /** The subject of the JWT. */
  readonly pub: string;
  readonly jwt: string;
  readonly claims: NatsClaims;
  /** Of the subject, or of one of its signing keys. */
  readonly seed: string;
}

export interface Imported {
  readonly operator: ImportedKey;
  readonly system: ImportedKey;
  readonly space?: ImportedKey;
}

/**
 * Reads `operator.jwt` and `.nk`, `system.jwt` and `.nk`, and `space.jwt` and `.nk` where one of them is there. Checks all
 * of it before anything is written; what does not fit refuses and names the file. `now` is Unix seconds.
 */
export async function readImport(dir: string, now: number): Promise<Imported> {
  const key = (name: string, kind: KeyKind) => readKey(dir, name, kind, now);
  const [operator, system, space] = [
    await key("operator", "operator"),
    await key("system", "account"),
    await key("space", "account"),
  ];
  if (operator === undefined) throw refused(join(dir, "operator.jwt"), "is not there");
  if (system === undefined) throw refused(join(dir, "system.jwt"), "is not there");
  checkOperator(dir, operator, system);
  checkAccount(dir, "system", operator, system);
  if (hasJetStream(system.claims)) throw refused(join(dir, "system.jwt"), "has JetStream: the broker would not start");
  if (space === undefined) return { operator, system };
  checkAccount(dir, "space", operator, space);
  if (space.pub === system.pub) throw refused(join(dir, "space.jwt"), "is the system account");
  if (!hasJetStream(space.claims)) throw refused(join(dir, "space.jwt"), "has no JetStream");
  const authorization = space.claims.nats.authorization;
  if (authorization !== undefined && Object.keys(Object(authorization)).length > 0) {
    throw refused(join(dir, "space.jwt"), "has a callout of its own, which would get our users");
  }
  return { operator, system, space };
}

async function readKey(dir: string, name: string, kind: KeyKind, now: number): Promise<ImportedKey | undefined> {
  const [jwtPath, seedPath] = [join(dir, `${name}.jwt`), join(dir, `${name}.nk`)];
  const [jwtText, seedText] = [await textOf(jwtPath), await textOf(seedPath)];
  if (jwtText === undefined && seedText === undefined) return undefined;
  const jwt = only(
    jwtPath,
    jwtText,
    /(?<![A-Za-z0-9_.-])[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?![A-Za-z0-9_.-])/g,
  );
  const seed = only(seedPath, seedText, /\bS[A-Z2-7]{57}\b/g);
  const claims = claimsOf(jwtPath, jwt);
  if (claims.nats.type !== kind) throw refused(jwtPath, `is no ${kind}'s JWT`);
  if (claims.exp !== undefined && claims.exp <= now) throw refused(jwtPath, "has expired");
  if (!keysOf(claims).includes(publicOf(seedPath, seed))) {
    throw refused(seedPath, `is neither the key of ${name}.jwt nor a signing key of it`);
  }
  return { pub: claims.sub, jwt, claims, seed };
}

function checkOperator(dir: string, operator: ImportedKey, system: ImportedKey): void {
  const { nats } = operator.claims;
  const path = join(dir, "operator.jwt");
  if (nats.system_account !== system.pub) throw refused(path, "names another system account");
  if (nats.strict_signing_key_usage !== true) return;
  // Under such an operator the broker takes nothing that a root key signed.
  for (const [name, key] of Object.entries({ operator, system })) {
    if (publicOf(join(dir, `${name}.nk`), key.seed) === key.pub) {
      throw refused(join(dir, `${name}.nk`), "must be a signing key: the operator is strict about their use");
    }
  }
}

function checkAccount(dir: string, name: string, operator: ImportedKey, account: ImportedKey): void {
  if (!keysOf(operator.claims).includes(account.claims.iss)) {
    throw refused(join(dir, `${name}.jwt`), "is not signed by this operator");
  }
}

/** The subject and its plain signing keys; a scoped one cannot sign what we sign. */
function keysOf({ sub, nats }: NatsClaims): string[] {
  const signing = Array.isArray(nats.signing_keys) ? nats.signing_keys : [];
  return [sub, ...signing.filter((key): key is string => typeof key === "string")];
}

function hasJetStream({ nats }: NatsClaims): boolean {
  const limits = Object(nats.limits);
  const tiers = Object.keys(Object(limits.tiered_limits));
  return tiers.length > 0 || [limits.mem_storage, limits.disk_storage].some((value) => (value ?? 0) !== 0);
}

function claimsOf(path: string, jwt: string): NatsClaims {
  try {
    return decodeJwt(jwt);
  } catch (cause) {
    throw refused(path, "is no JWT of version 2 with a good signature", cause);
  }
}

function publicOf(path: string, seed: string): string {
  try {
    return keyPairFromSeed(seed).public;
  } catch (cause) {
    throw refused(path, "is no seed", cause);
  }
}

/** What the tools print has lines around it. */
function only(path: string, text: string | undefined, pattern: RegExp): string {
  if (text === undefined) throw refused(path, "is not there");
  const [found, ...more] = text.match(pattern) ?? [];
  if (found === undefined || more.length > 0) throw refused(path, "does not hold exactly one");
  return found;
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined;
    throw refused(path, "cannot be read", cause);
  }
}
