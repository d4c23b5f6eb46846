/**
 * Owner secret, issuer keys and the `trust` row agree, or nothing is signed (identity §1.3, §5).
 *
 * Nothing is generated before `trust` has been read from the leader; where the row exists, a missing or other secret
 * is one that was lost, and a new one would re-key every owner.
 */
import type { Logger } from "pino";
import type { SigningKey } from "../../shared/bearer.ts";
import { canonicalText } from "../../shared/canonical.ts";
import { internal, isAuthorityError, textOf, unavailable } from "../../shared/errors.ts";
import { BEARER, WIRE } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";
import { type Trust, trustRows } from "../../shared/rows/connect.ts";
import type { Entry } from "../../shared/rows/family.ts";
import { refused } from "../../shared/secrets/document.ts";
import { type IssuerFile, newIssuerFile } from "../../shared/secrets/issuer.ts";
import { adoptSecret, newOwnerSecret, type OwnerSecret, readSecret, SECRET } from "../../shared/secrets/keys.ts";
import { type SecretStore, secretKey } from "../../shared/secrets/store.ts";
import { create, swap } from "../../shared/store/message.ts";
import type { Store } from "../../shared/store/store.ts";
import type { Space } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import { type PublicKey, publicKeys, signingKey } from "./issuer-keys.ts";
import { ownerCommitment } from "./owner.ts";

export interface TrustDeps {
  readonly space: Space;
  readonly store: Pick<Store, "read" | "commit">;
  readonly secrets: Pick<SecretStore, "get" | "create">;
  readonly ports: Ports;
  readonly log: Logger;
}

/** What a bearer is signed with, as of now. */
export interface Issuing {
  readonly issuer: string;
  readonly key: SigningKey;
}

const TRUST = trustRows.key({});

export class TrustKeeper {
  readonly ownerSecret: Uint8Array;
  readonly #deps: TrustDeps;
  #file: IssuerFile;
  #issuing: Issuing | undefined;
  #key: SigningKey | undefined;

  private constructor(deps: TrustDeps, ownerSecret: Uint8Array, file: IssuerFile) {
    this.#deps = deps;
    this.ownerSecret = ownerSecret;
    this.#file = file;
  }

  /** Refuses the start (`failed-precondition`) where the secrets are not those that `trust` names. */
  static async open(deps: TrustDeps): Promise<TrustKeeper> {
    const trust = (await read(deps)) ?? (await found(deps));
    const { secret, file } = await agreed(deps, trust.value);
    const keeper = new TrustKeeper(deps, secret, file);
    await keeper.#settle(trust, file);
    return keeper;
  }

  /** The key that signs; `unavailable` while the file is older than `trust`, or unreadable. */
  get issuing(): Issuing {
    if (!this.#issuing) throw unavailable("issuer.json is not the one that trust names");
    return this.#issuing;
  }

  get rev(): number {
    return this.#file.rev;
  }

  get ready(): boolean {
    return this.#issuing !== undefined;
  }

  /** Every published key. */
  get keys(): PublicKey[] {
    return publicKeys(this.#file);
  }

  /** Every 30 s until the signal aborts: a rotation takes effect, and so does another replica's. */
  async follow(signal: AbortSignal): Promise<void> {
    const { ports, log } = this.#deps;
    while (!signal.aborted) {
      await ports.sleep(BEARER.issuerMs, signal).catch(() => {});
      if (signal.aborted) return;
      await this.refresh().catch((error: unknown) => {
        log.error({ err: textOf(error), reason: isAuthorityError(error) ? error.reason : undefined }, "issuer keys");
      });
    }
  }

  /** One look. A file that cannot be read signs nothing more; a leader that cannot be asked changes nothing. */
  async refresh(): Promise<void> {
    const { secrets, space } = this.#deps;
    let file: IssuerFile | undefined;
    try {
      file = await readSecret(secrets, space, SECRET.issuer);
      if (!file) throw refused(secretKey(space, SECRET.issuer.file), RESTORE);
    } catch (error) {
      this.#issuing = undefined;
      throw error;
    }
    const trust = await read(this.#deps);
    if (!trust) {
      this.#issuing = undefined;
      throw internal("trust was there and is gone");
    }
    await this.#settle(trust, file);
  }

  /** Brings `trust` up to the file, and takes the file into use if they then agree. */
  async #settle(trust: Entry<Trust>, file: IssuerFile): Promise<void> {
    const wanted = trustOf(file, trust.value.ownerCommitment);
    const current = file.rev > trust.value.rev ? await raise(this.#deps, trust, wanted) : trust.value;
    if (file.rev < current.rev) {
      this.#issuing = undefined;
      this.#deps.log.warn({ rev: file.rev, trustRev: current.rev }, "issuer.json is older than trust: not signing");
      return;
    }
    if (canonicalText(current) !== canonicalText(wanted)) {
      this.#issuing = undefined;
      throw refused(secretKey(this.#deps.space, SECRET.issuer.file), `is not the one of trust: ${RESTORE}`);
    }
    if (this.#key?.kid !== file.activeKid) this.#key = await signingKey(file);
    this.#file = file;
    this.#issuing = { issuer: file.issuer, key: this.#key };
  }
}

const RESTORE = "restore it from backup";

const read = (deps: TrustDeps): Promise<Entry<Trust> | undefined> => deps.store.read(TRUST, work(deps));
const work = ({ ports }: TrustDeps) => ownWork(ports, WIRE.defaultDeadlineMs);

/** The first exchange of a space: the row decides between several that start at once. */
async function found(deps: TrustDeps): Promise<Entry<Trust>> {
  const { secrets, space, ports } = deps;
  const ownerSecret = await adoptSecret(secrets, space, SECRET.ownerSecret, () => newOwnerSecret(ports));
  const file = await adoptSecret(secrets, space, SECRET.issuer, () => newIssuerFile(space, ports));
  const row = trustOf(file, ownerCommitment(bytesOf(ownerSecret)));
  try {
    await deps.store.commit([create(TRUST, row)], work(deps));
  } catch (error) {
    if (!isAuthorityError(error, "conflict")) throw error;
  }
  const trust = await read(deps);
  if (!trust) throw internal("trust was created and is not there");
  return trust;
}

/** The secrets that `trust` names. */
async function agreed(deps: TrustDeps, trust: Trust): Promise<{ secret: Uint8Array; file: IssuerFile }> {
  const { secrets, space } = deps;
  const ownerSecret = await readSecret(secrets, space, SECRET.ownerSecret);
  const file = await readSecret(secrets, space, SECRET.issuer);
  const fault = (name: string, what: string) => refused(secretKey(space, name), `${what}: ${RESTORE}`);
  if (!ownerSecret) throw fault(SECRET.ownerSecret.file, "is not there, but trust is");
  if (!file) throw fault(SECRET.issuer.file, "is not there, but trust is");
  const secret = bytesOf(ownerSecret);
  if (ownerCommitment(secret) !== trust.ownerCommitment) throw fault(SECRET.ownerSecret.file, "is another one");
  if (file.issuer !== trust.issuer) throw fault(SECRET.issuer.file, "is of another issuer");
  return { secret, file };
}

/** Another replica may be faster; what it wrote is then compared like anything read. */
async function raise(deps: TrustDeps, trust: Entry<Trust>, wanted: Trust): Promise<Trust> {
  try {
    await deps.store.commit([swap(trust, wanted)], work(deps));
    deps.log.info({ rev: wanted.rev, activeKid: wanted.activeKid }, "trust raised");
    return wanted;
  } catch (error) {
    if (!isAuthorityError(error, "conflict")) throw error;
    const now = await read(deps);
    if (!now) throw internal("trust was there and is gone");
    return now.value;
  }
}

const trustOf = (file: IssuerFile, commitment: Trust["ownerCommitment"]): Trust => ({
  v: 1,
  rev: file.rev,
  issuer: file.issuer,
  activeKid: file.activeKid,
  keys: publicKeys(file),
  ownerCommitment: commitment,
});

const bytesOf = ({ secretB64 }: OwnerSecret): Uint8Array => Buffer.from(secretB64, "base64");
