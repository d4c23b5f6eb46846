/** The default secret store: a folder of files with mode 0600 (identity §1.1). */
import type { Ports } from "../ports.ts";
import { refused } from "./document.ts";
import { type Folder, openFolder } from "./folder.ts";
import { PUBLIC_FILE } from "./keys.ts";
import { limitedTo, type SecretStore, STORE_IDENTITY } from "./store.ts";

const IDENTITY_FILE = "store.id";
const KEY = /^auth\/space\.([0-9a-f]{2})+\/[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

/** The store in a state folder that `init` made. With `view`, of those keys alone. */
export async function directoryStore(stateDir: string, view?: Iterable<string>): Promise<SecretStore> {
  const store = await storeIn(await openFolder(stateDir));
  return view === undefined ? store : limitedTo(store, view);
}

export async function storeIn(folder: Folder): Promise<SecretStore> {
  const identity = await readIdentity(folder);
  if (identity === undefined) throw refused(`${folder.path}/${IDENTITY_FILE}`, "is not there: run init first");
  return {
    identity,
    get: (key) => folder.read(checked(key), exposureOf(key)),
    create: (key, value) => folder.create(checked(key), value, exposureOf(key)),
    put: (key, value) => folder.replace(checked(key), value, exposureOf(key)),
  };
}

/** Gives a new state folder its identity; one that has it keeps it. */
export async function identify(folder: Folder, ports: Ports): Promise<void> {
  const bytes = ports.random(16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40; // a UUID of version 4
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const uuid = Buffer.from(bytes)
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  if ((await readIdentity(folder)) === undefined) {
    await folder.create(IDENTITY_FILE, new TextEncoder().encode(`${uuid}\n`), "secret");
  }
}

async function readIdentity(folder: Folder): Promise<string | undefined> {
  const bytes = await folder.read(IDENTITY_FILE, "secret");
  if (bytes === undefined) return undefined;
  const identity = new TextDecoder().decode(bytes).trim();
  if (!STORE_IDENTITY.test(identity)) throw refused(`${folder.path}/${IDENTITY_FILE}`, "is no identity");
  return identity;
}

const exposureOf = (key: string) => (key.endsWith(`/${PUBLIC_FILE}`) ? "public" : "secret");

function checked(key: string): string {
  if (!KEY.test(key)) throw refused("secret store", "a key is auth/space.<hex>/<file>");
  return key;
}
