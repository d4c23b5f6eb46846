/** An operator with one account, for tests that need a broker which checks user JWTs. */
import {
  accountClaims,
  encodeJwt,
  operatorClaims,
  type Permissions,
  userClaims,
} from "../../../shared/credentials/jwt.ts";
import { createKeyPair, type KeyPair } from "../../../shared/credentials/nkeys.ts";
import type { User } from "../../../shared/nats/connect.ts";

const operator = createKeyPair("operator");
const system = createKeyPair("account");
const account = createKeyPair("account");
const iat = Math.floor(Date.now() / 1000);

const operatorJwt = encodeJwt(
  operatorClaims({ subject: operator.public, name: "O", systemAccount: system.public, iat }),
  operator,
);

/** Broker configuration; the users given are revoked. */
export function config(...revoked: string[]): string {
  const jwt = (pair: KeyPair, jetstream: "unset" | "unlimited") => {
    const revocations = Object.fromEntries(revoked.map((user) => [user, iat + 60]));
    const claims = { subject: pair.public, name: "A", signingKeys: [], jetstream, revocations, iat };
    return encodeJwt(accountClaims(claims), operator);
  };
  return `operator: ${operatorJwt}
system_account: ${system.public}
resolver: MEMORY
resolver_preload { ${system.public}: ${jwt(system, "unset")}, ${account.public}: ${jwt(account, "unlimited")} }`;
}

/** A user that may do everything, or publish or subscribe only that, for `seconds` or for ever. */
export function user(
  options: { seconds?: number; key?: KeyPair; publish?: string[]; subscribe?: string[] } = {},
): User {
  const key = options.key ?? createKeyPair("user");
  const now = Math.floor(Date.now() / 1000);
  const permissions: Permissions = {
    pub: { allow: options.publish ?? [">"], deny: [] },
    sub: { allow: options.subscribe ?? [">"], deny: [] },
  };
  const claims = {
    subject: key.public,
    name: "local-test",
    issuerAccount: account.public,
    permissions,
    tags: [],
    iat: now,
  };
  const draft = userClaims(options.seconds === undefined ? claims : { ...claims, exp: now + options.seconds });
  return { jwt: encodeJwt(draft, account), key };
}
