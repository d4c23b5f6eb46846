/**
 * Makes the accounts, keys and users of a space, and the broker's configuration (identity §1).
 *
 *     await initSpace({ stateDir: "state", space, permissionsOf, ports: systemPorts });
 *
 * What is there is kept, so a repeat after a crash finishes what was begun, and one on a finished space makes nothing.
 */
import { decodeJwt, encodeJwt, operatorClaims } from "../../shared/credentials/jwt.ts";
import { createKeyPair, keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { forEveryUser, type PermissionsOf, USER_NAMES, type UserName } from "../../shared/credentials/users.ts";
import type { Ports } from "../../shared/ports.ts";
import { identify, storeIn } from "../../shared/secrets/directory.ts";
import { refused } from "../../shared/secrets/document.ts";
import { type Folder, openFolder } from "../../shared/secrets/folder.ts";
import {
  adoptCreds,
  adoptSecret,
  type CalloutKeys,
  decodeCreds,
  loadSecret,
  type PublicKeys,
  SECRET,
  type ServiceKeys,
} from "../../shared/secrets/keys.ts";
import { type IdpPin, PinFile } from "../../shared/secrets/pins.ts";
import { type SpaceSettings, settingsDocument, spaceFiles } from "../../shared/secrets/settings.ts";
import type { SecretStore } from "../../shared/secrets/store.ts";
import { AccountNkey, type Space, UserNkey } from "../../shared/tokens.ts";
import { createAccounts } from "./accounts.ts";
import { writeBrokerConf } from "./broker-conf.ts";
import { type Imported, readImport } from "./import.ts";
import { keepAccount, keepOperator, readOperator, seconds } from "./jwts.ts";
import { makeSentinel, makeUser, type Signer, signersOf } from "./provision.ts";
import { type Root, readRoot, signerOf, writeRoot } from "./root.ts";

export interface InitOptions {
  readonly stateDir: string;
  readonly space: Space;
  readonly permissionsOf: PermissionsOf;
  readonly ports: Ports;
  /** Settings of a new space beside the defaults; those of a finished one stay as they are. */
  readonly settings?: Partial<Omit<SpaceSettings, "ver" | "space" | "storeIdentity">>;
  /** Written where there are none yet. */
  readonly pins?: readonly IdpPin[];
  /** Operator, system and perhaps space account come from there. */
  readonly importDir?: string;
}

export const DEFAULT_SETTINGS = {
  broker: { advertised: "nats://127.0.0.1:4222", tlsRequired: false },
  gateway: { loopbackPort: 4280 },
} as const;

/** The settings in force, and whether this call made the space. */
export async function initSpace(options: InitOptions): Promise<{ settings: SpaceSettings; created: boolean }> {
  const { space, ports } = options;
  const imported = options.importDir === undefined ? undefined : await readImport(options.importDir, seconds(ports));
  const folder = await openFolder(options.stateDir, { make: true, ports });
  await identify(folder, ports);
  const store = await storeIn(folder);
  const files = spaceFiles(folder, space);
  const pins = options.pins && { ver: 1 as const, pins: [...options.pins] };
  if (pins) PinFile.encode(pins); // refuses here, before anything is made
  const present = await files.readSettings(store.identity);
  if (present !== undefined && imported !== undefined) throw refused(folder.path, `space ${space} is there already`);
  const settings = present ?? newSettings(options, store.identity);
  if (present === undefined) {
    await makeSpace(folder, store, options, imported);
    await files.createSettings(settings); // the last file: a space with settings is whole
  } else if (!(await files.hasSentinel())) {
    // Clients' copies of the former one stay good: the same key signed it.
    const { account } = await loadSecret(store, space, SECRET.calloutKeys);
    const signer = { pub: account.pub, key: keyPairFromSeed(account.signingSeed) };
    await files.createSentinel(makeSentinel(signer, ports));
  }
  if (pins) await files.createPins(pins);
  await writeBrokerConf(folder, store);
  return { settings, created: present === undefined };
}

function newSettings({ space, settings }: InitOptions, storeIdentity: string): SpaceSettings {
  const value: SpaceSettings = { ...structuredClone(DEFAULT_SETTINGS), ...settings, ver: 1, space, storeIdentity };
  settingsDocument.encode(value); // refuses here, before anything is made
  return value;
}

async function makeSpace(folder: Folder, store: SecretStore, options: InitOptions, imported?: Imported): Promise<void> {
  const { space, permissionsOf, ports } = options;
  const root = await makeRoot(folder, space, ports, imported);
  const accounts = root.spaces[space];
  if (accounts === undefined) throw refused(folder.path, `broker/root.json has no space ${space}`);

  const serviceKeys = await adoptSecret(store, space, SECRET.serviceKeys, () => newServiceKeys(accounts, ports));
  const calloutKeys = await adoptSecret(store, space, SECRET.calloutKeys, () =>
    newCalloutKeys(accounts.callout.pub, (signer) => makeUser(space, "callout", signer, permissionsOf, ports), ports),
  );
  const signers = signersOf(root, serviceKeys, calloutKeys);

  const nkeys = new Map<UserName, string>();
  for (const name of USER_NAMES) {
    const creds =
      name === "callout"
        ? decodeCreds("callout.json", calloutKeys.calloutCreds)
        : await adoptCreds(store, space, name, () => makeUser(space, name, signers, permissionsOf, ports));
    nkeys.set(name, decodeJwt(creds.jwt).sub);
  }
  const publicKeys = await adoptSecret(store, space, SECRET.publicKeys, () => newPublicKeys(root, space, nkeys));
  for (const name of USER_NAMES) {
    if (publicKeys.users[name] !== nkeys.get(name)) throw refused(folder.path, `public.json names another ${name}`);
  }
  const files = spaceFiles(folder, space);
  await files.createSentinel(makeSentinel(signers.callout, ports));
  await createAccounts({ folder, space, root, serviceKeys, calloutKeys, publicKeys, ports });
}

/** The seeds of operator and accounts, with those of this space. The only file that a second space changes. */
async function makeRoot(folder: Folder, space: Space, ports: Ports, imported?: Imported): Promise<Root> {
  const present = await readRoot(folder);
  if (imported) await placeImport(folder, imported);
  else if (present === undefined && (await readOperator(folder)) !== undefined) {
    throw refused(`${folder.path}/broker/root.json`, "is not there: bring it back from where it is kept");
  }
  const account = (from?: { pub: string; seed: string }) => {
    const { pub, seed } = from ?? freshKey("account", ports);
    return { pub: AccountNkey.parse(pub), seed };
  };
  const base: Root = present ?? {
    ver: 1,
    operator: imported ? { pub: imported.operator.pub, seed: imported.operator.seed } : freshKey("operator", ports),
    system: account(imported?.system),
    spaces: {},
  };
  const root: Root = {
    ...base,
    spaces: { [space]: { space: account(imported?.space), callout: account(), authority: account() }, ...base.spaces },
  };
  if (base.spaces[space] === undefined) await writeRoot(folder, root);
  if (!imported) await keepOperator(folder, () => operatorJwt(root, ports));
  return root;
}

/** Before the seeds, so that no repeat without the import could sign others in their place. */
async function placeImport(folder: Folder, { operator, system, space }: Imported): Promise<void> {
  if (!(await keepOperator(folder, () => operator.jwt)))
    throw refused(folder.path, "has another operator than the import");
  await keepAccount(folder, system.pub, () => system.jwt);
  if (space) await keepAccount(folder, space.pub, () => space.jwt);
}

function operatorJwt({ operator, system }: Root, ports: Ports): string {
  const claims = operatorClaims({
    subject: operator.pub,
    name: "mesh",
    systemAccount: system.pub,
    iat: seconds(ports),
  });
  return encodeJwt(claims, signerOf(operator), ports);
}

function newServiceKeys({ space, authority }: Root["spaces"][string], ports: Ports): ServiceKeys {
  return {
    ver: 1,
    dataAccount: { pub: space.pub, signingSeed: freshKey("account", ports).seed },
    authorityAccount: { pub: authority.pub, signingSeed: freshKey("account", ports).seed },
  };
}

function newCalloutKeys(pub: AccountNkey, credsOf: (signer: Signer) => string, ports: Ports): CalloutKeys {
  const signing = freshKey("account", ports);
  const account = { pub, signingPub: AccountNkey.parse(signing.pub), signingSeed: signing.seed };
  const calloutCreds = credsOf({ pub, key: keyPairFromSeed(signing.seed) });
  return { ver: 1, account, calloutCreds, xkey: freshKey("curve", ports) };
}

function newPublicKeys({ spaces }: Root, space: Space, nkeys: ReadonlyMap<UserName, string>): PublicKeys {
  const pubOf = (name: "space" | "callout" | "authority") => AccountNkey.parse(spaces[space]?.[name].pub);
  return {
    ver: 1,
    accounts: { space: pubOf("space"), callout: pubOf("callout"), authority: pubOf("authority") },
    users: forEveryUser((name) => UserNkey.parse(nkeys.get(name))),
  };
}

function freshKey(kind: "operator" | "account" | "curve", ports: Ports): { pub: string; seed: string } {
  const pair = createKeyPair(kind, ports);
  return { pub: pair.public, seed: pair.seed };
}
