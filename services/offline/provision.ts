/** Makes a provisioned user: a fresh key, a JWT that does not expire, a creds file (identity §1.1). */
import { formatCreds } from "../../shared/credentials/creds.ts";
import { encodeJwt, userClaims } from "../../shared/credentials/jwt.ts";
import { createKeyPair, type KeyPair, keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { signUser } from "../../shared/credentials/sign.ts";
import {
  type AccountName,
  type PermissionsOf,
  provisionedUser,
  USERS,
  type UserName,
} from "../../shared/credentials/users.ts";
import type { Ports } from "../../shared/ports.ts";
import type { CalloutKeys, ServiceKeys } from "../../shared/secrets/keys.ts";
import { AccountNkey, dashForm, type Space } from "../../shared/tokens.ts";
import { seconds } from "./jwts.ts";
import { type Root, signerOf } from "./root.ts";

export interface Signer {
  /** The account that the user is of. */
  readonly pub: string;
  readonly key: KeyPair;
}

/** Who signs the users of each account: signing keys, but the imported or own root of the system account. */
export function signersOf(
  root: Root,
  serviceKeys: ServiceKeys,
  calloutKeys: Pick<CalloutKeys, "account">,
): Readonly<Record<AccountName, Signer>> {
  const { dataAccount, authorityAccount } = serviceKeys;
  const signing = ({ pub, signingSeed }: { pub: string; signingSeed: string }): Signer => ({
    pub,
    key: keyPairFromSeed(signingSeed),
  });
  return {
    space: signing(dataAccount),
    authority: signing(authorityAccount),
    callout: signing(calloutKeys.account),
    system: { pub: root.system.pub, key: signerOf(root.system) },
  };
}

/** The creds of a new user of that name. */
export function makeUser(
  space: Space,
  name: UserName,
  signers: Readonly<Record<AccountName, Signer>> | Signer,
  permissionsOf: PermissionsOf,
  ports: Ports,
): string {
  const { pub, key: signer } = "key" in signers ? signers : signers[USERS[name].account];
  const key = createKeyPair("user", ports);
  const user = provisionedUser(space, name, key.public);
  const jwt = signUser(
    {
      key: user.nkey,
      name: dashForm(user.owner, user.actor),
      account: AccountNkey.parse(pub),
      signer,
      permissions: permissionsOf(user),
      holder: user,
      issuedAtS: seconds(ports),
    },
    ports,
  );
  return formatCreds(jwt, key.seed);
}

/** The user that everyone presents beside a bearer. It may do nothing, and is on no list: so it is sent to the callout. */
export function makeSentinel({ pub, key: signer }: Signer, ports: Ports): string {
  const key = createKeyPair("user", ports);
  const none = { allow: [], deny: [] };
  const claims = userClaims({
    subject: key.public,
    name: "sentinel",
    issuerAccount: pub,
    permissions: { pub: none, sub: none },
    tags: [],
    iat: seconds(ports),
  });
  return formatCreds(encodeJwt(claims, signer, ports), key.seed);
}
