/** What the broker is told of the system account and of the three accounts of a space (identity §1.4). */
import { type AccountOptions, accountClaims, encodeJwt, type NatsBody } from "../../shared/credentials/jwt.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { CALLOUT_USERS } from "../../shared/credentials/users.ts";
import type { Ports } from "../../shared/ports.ts";
import type { Folder } from "../../shared/secrets/folder.ts";
import type { CalloutKeys, PublicKeys, ServiceKeys } from "../../shared/secrets/keys.ts";
import type { Space } from "../../shared/tokens.ts";
import { amendAccount, keepAccount, loadAccount, readAccount, seconds } from "./jwts.ts";
import { type Root, signerOf } from "./root.ts";

interface Parts {
  readonly folder: Folder;
  readonly space: Space;
  readonly root: Root;
  readonly serviceKeys: ServiceKeys;
  readonly calloutKeys: CalloutKeys;
  readonly publicKeys: PublicKeys;
  readonly ports: Ports;
}

/** Signs the account JWTs that are not there yet. An imported one keeps what it says and gets our signing key. */
export async function createAccounts(parts: Parts): Promise<void> {
  const { folder, space, root, serviceKeys, calloutKeys, publicKeys, ports } = parts;
  const { accounts } = publicKeys;
  const operator = signerOf(root.operator);
  const dataKey = publicOf(serviceKeys.dataAccount.signingSeed);

  const create = async (subject: string, name: string, more: Omit<AccountOptions, "subject" | "name" | "iat">) => {
    if ((await readAccount(folder, subject)) !== undefined) return;
    const claims = accountClaims({ subject, name, iat: seconds(ports), ...more });
    await keepAccount(folder, subject, () => encodeJwt(claims, operator, ports));
  };
  await create(root.system.pub, "SYS", { signingKeys: [], jetstream: "unset" });
  await create(accounts.space, space, { signingKeys: [dataKey], jetstream: "unlimited" });
  await create(accounts.authority, `${space}-authority`, {
    signingKeys: [publicOf(serviceKeys.authorityAccount.signingSeed)],
    jetstream: "unlimited",
  });
  await create(accounts.callout, `${space}-callout`, {
    signingKeys: [calloutKeys.account.signingPub],
    jetstream: "none",
    authorization: {
      authUsers: authUsers(publicKeys),
      allowedAccounts: [accounts.space],
      xkey: calloutKeys.xkey.pub,
    },
  });
  const { claims } = await loadAccount(folder, accounts.space);
  if (!signingKeys(claims.nats).includes(dataKey)) {
    await amendAccount(folder, accounts.space, operator, ports, (nats) => ({
      ...nats,
      signing_keys: [...signingKeys(nats), dataKey],
    }));
  }
}

/** Those of the callout account that the broker admits itself. */
export const authUsers = ({ users }: PublicKeys): string[] => CALLOUT_USERS.map((name) => users[name]);

/** From now on the broker refuses these users, whatever JWT they have. `iat` is Unix seconds. */
export function revoking(nats: NatsBody, nkeys: Iterable<string>, iat: number): NatsBody {
  const added = Object.fromEntries([...nkeys].map((nkey) => [nkey, iat]));
  return { ...nats, revocations: { ...Object(nats.revocations), ...added } };
}

/** The keys under which `auth` signs in the space account: the current one, and the former while there is one. */
export const ownSigningKeys = ({ dataAccount }: Pick<ServiceKeys, "dataAccount">): string[] =>
  [dataAccount.signingSeed, dataAccount.previousSeed]
    .filter((seed) => seed !== undefined)
    .map((seed) => keyPairFromSeed(seed).public);

export function signingKeys(nats: NatsBody): unknown[] {
  return Array.isArray(nats.signing_keys) ? nats.signing_keys : [];
}

const publicOf = (seed: string): string => keyPairFromSeed(seed).public;
