/** `rotate creds` and `rotate issuer`: what the operator runs beside the services (identity §1.3, §5). */
import { decodeJwt } from "../../shared/credentials/jwt.ts";
import { type PermissionsOf, USERS, type UserName } from "../../shared/credentials/users.ts";
import type { Ports } from "../../shared/ports.ts";
import { storeIn } from "../../shared/secrets/directory.ts";
import { type Folder, openFolder } from "../../shared/secrets/folder.ts";
import { type IssuerFile, newIssuerKey } from "../../shared/secrets/issuer.ts";
import {
  decodeCreds,
  loadSecret,
  type PublicKeys,
  readCreds,
  replaceCreds,
  replaceSecret,
  SECRET,
} from "../../shared/secrets/keys.ts";
import { spaceFiles } from "../../shared/secrets/settings.ts";
import type { SecretStore } from "../../shared/secrets/store.ts";
import { type Space, UserNkey } from "../../shared/tokens.ts";
import { authUsers, revoking } from "./accounts.ts";
import { writeBrokerConf } from "./broker-conf.ts";
import { activateNext, publishNext, removeCompromised, retire } from "./issuer-steps.ts";
import { amendAccount, seconds } from "./jwts.ts";
import { makeUser, signersOf } from "./provision.ts";
import { loadRoot, signerOf } from "./root.ts";

interface Target {
  readonly stateDir: string;
  readonly space: Space;
  readonly ports: Ports;
}

/**
 * Gives a provisioned user a new key and revokes the old one. In force once the broker reloads: then the connections of
 * the old close, and whoever uses it is started anew. A repeat after a crash finishes what was begun.
 */
export async function rotateCreds(
  options: Target & { readonly name: UserName; readonly permissionsOf: PermissionsOf },
): Promise<{ readonly nkey: UserNkey; readonly revoked: readonly string[] }> {
  const { space, name, ports } = options;
  const { folder, store } = await openState(options);
  const root = await loadRoot(folder);
  const serviceKeys = await loadSecret(store, space, SECRET.serviceKeys);
  const calloutKeys = await loadSecret(store, space, SECRET.calloutKeys);
  const publicKeys = await loadSecret(store, space, SECRET.publicKeys);
  const signers = signersOf(root, serviceKeys, calloutKeys);

  // Two differ only where an earlier attempt ended between its writes.
  const former =
    name === "callout" ? decodeCreds("callout.json", calloutKeys.calloutCreds) : await readCreds(store, space, name);
  const revoked = new Set([publicKeys.users[name], ...(former ? [subjectOf(former.jwt)] : [])]);

  const text = makeUser(space, name, signers, options.permissionsOf, ports);
  const nkey = UserNkey.parse(subjectOf(decodeCreds("the new creds", text).jwt));
  const users: PublicKeys = { ...publicKeys, users: { ...publicKeys.users, [name]: nkey } };

  // The account first: a crash leaves a user that the broker refuses, never one that it should and does not.
  const { account } = USERS[name];
  await amendAccount(folder, signers[account].pub, signerOf(root.operator), ports, (nats) => {
    const amended = revoking(nats, revoked, seconds(ports));
    if (account !== "callout") return amended;
    return { ...amended, authorization: { ...Object(nats.authorization), auth_users: authUsers(users) } };
  });
  if (name === "callout") await replaceSecret(store, space, SECRET.calloutKeys, { ...calloutKeys, calloutCreds: text });
  else await replaceCreds(store, space, name, text);
  await replaceSecret(store, space, SECRET.publicKeys, users);
  await writeBrokerConf(folder, store);
  return { nkey, revoked: [...revoked] };
}

export type IssuerStep =
  | { readonly step: "next" | "activate" }
  | { readonly step: "retire" | "compromised"; readonly kid: string };

/** One step of `rotate issuer`; every exchange takes it over within 30 s. */
export async function rotateIssuer(options: Target & { readonly change: IssuerStep }): Promise<IssuerFile> {
  const { space, ports, change } = options;
  const { store } = await openState(options);
  const file = applied(await loadSecret(store, space, SECRET.issuer), change, ports);
  await replaceSecret(store, space, SECRET.issuer, file);
  return file;
}

function applied(file: IssuerFile, change: IssuerStep, ports: Ports): IssuerFile {
  switch (change.step) {
    case "next":
      return publishNext(file, newIssuerKey(ports));
    case "activate":
      return activateNext(file, ports.now());
    case "retire":
      return retire(file, change.kid, ports.now());
    case "compromised":
      return removeCompromised(file, change.kid, () => newIssuerKey(ports), ports.now());
  }
}

/** A space that is whole: rotation makes none. */
async function openState({ stateDir, space, ports }: Target): Promise<{ folder: Folder; store: SecretStore }> {
  const folder = await openFolder(stateDir, { ports });
  const store = await storeIn(folder);
  await spaceFiles(folder, space).settings(store.identity);
  return { folder, store };
}

const subjectOf = (jwt: string): string => decodeJwt(jwt).sub;
