/** Signs a user: the one place where permissions, tags and lifetimes become a JWT (state §5). */
import { AuthorityError } from "../errors.ts";
import { CREDENTIAL } from "../limits.ts";
import type { Ports } from "../ports.ts";
import type { AccountNkey, CredentialId, Triple, UserNkey } from "../tokens.ts";
import { encodeJwt, identityTags, type Permissions, userClaims } from "./jwt.ts";
import type { KeyPair } from "./nkeys.ts";

export interface UserToSign {
  readonly key: UserNkey;
  /** The profile's name; under a view the principal's dash form. */
  readonly name: string;
  readonly account: AccountNkey;
  /** A signing key of that account, or its root. */
  readonly signer: KeyPair;
  readonly permissions: Permissions;
  readonly holder: Triple;
  /** The root row that a connection admitted by the callout stands on. */
  readonly credential?: CredentialId;
  /** Unix seconds. Without `expS` it does not expire. `nbf` is never set: the broker grants no leeway. */
  readonly issuedAtS: number;
  readonly expS?: number;
  readonly connectionTypes?: readonly string[];
}

/** The JWT. Over 16,384 bytes it is `resource-exhausted`, before anything was written. */
export function signUser(user: UserToSign, ports: Pick<Ports, "random">): string {
  const { owner, actor, uid } = user.holder;
  const claims = userClaims({
    subject: user.key,
    name: user.name,
    issuerAccount: user.account,
    permissions: user.permissions,
    tags: [...identityTags(owner, actor, uid), ...(user.credential ? [`credential:${user.credential}`] : [])],
    iat: user.issuedAtS,
    ...(user.expS === undefined ? {} : { exp: user.expS }),
    ...(user.connectionTypes ? { connectionTypes: user.connectionTypes } : {}),
  });
  const jwt = encodeJwt(claims, user.signer, ports);
  if (jwt.length > CREDENTIAL.maxJwt) {
    throw new AuthorityError("resource-exhausted", "the credential is larger than the broker takes", {
      reason: `JWT ${user.name}: ${jwt.length} bytes, ${user.permissions.pub.allow.length} publish rows`,
    });
  }
  return jwt;
}
