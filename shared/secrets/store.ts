/** Where secrets are kept, whoever keeps them (identity §1.1). */
import { internal } from "../errors.ts";
import type { Space } from "../tokens.ts";

/**
 * Keys are `auth/space.<hex>/<file>`. A host that keeps secrets elsewhere than in a folder implements this.
 */
export interface SecretStore {
  /** `[A-Za-z0-9-]{1,64}`, fixed for the life of the store. */
  readonly identity: string;
  /** Undefined only for proven absence; else it throws. */
  get(key: string): Promise<Uint8Array | undefined>;
  /** Atomic put-if-absent; false = something is there. */
  create(key: string, value: Uint8Array): Promise<boolean>;
  /** Replaces; only rotation calls it. */
  put(key: string, value: Uint8Array): Promise<void>;
}

export const STORE_IDENTITY = /^[A-Za-z0-9-]{1,64}$/;

/** `space.<hex>`: no two names of spaces merge on a disk that ignores case. */
export const spaceFolder = (space: Space): string => `space.${Buffer.from(space).toString("hex")}`;

/** The key of one file of a space. */
export const secretKey = (space: Space, file: string): string => `auth/${spaceFolder(space)}/${file}`;

/** A view of some keys alone; any other key throws, so a service cannot load what is another's. */
export function limitedTo(store: SecretStore, keys: Iterable<string>): SecretStore {
  const own = new Set(keys);
  const checked = async (key: string): Promise<string> => {
    if (!own.has(key)) throw internal(`secret ${key} is outside this view`);
    return key;
  };
  return {
    identity: store.identity,
    get: async (key) => store.get(await checked(key)),
    create: async (key, value) => store.create(await checked(key), value),
    put: async (key, value) => store.put(await checked(key), value),
  };
}

/** First use: what is there, or what was generated, unless somebody else was faster; then theirs (identity §1.3). */
export async function adoptOrCreate(
  store: Pick<SecretStore, "get" | "create">,
  key: string,
  generate: () => Uint8Array,
): Promise<Uint8Array> {
  const present = await store.get(key);
  if (present !== undefined) return present;
  const value = generate();
  if (await store.create(key, value)) return value;
  const winner = await store.get(key);
  if (winner === undefined) throw internal(`secret ${key} was there and is gone`);
  return winner;
}
