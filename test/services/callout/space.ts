/** A space's accounts on a real broker in operator mode, with the callout account that sends clients to the service. */
import type { NatsConnection } from "@nats-io/transport-node";
import {
  accountClaims,
  encodeJwt,
  operatorClaims,
  type Permissions,
  userClaims,
} from "../../../shared/credentials/jwt.ts";
import { createKeyPair, type KeyPair } from "../../../shared/credentials/nkeys.ts";
import { connectUser, type User } from "../../../shared/nats/connect.ts";
import { Space } from "../../../shared/tokens.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";

export const space = Space.parse("demo");
const iat = Math.floor(Date.now() / 1_000);
const everything: Permissions = { pub: { allow: [">"], deny: [] }, sub: { allow: [">"], deny: [] } };
const nothing: Permissions = { pub: { allow: [], deny: [] }, sub: { allow: [], deny: [] } };

export interface Account {
  readonly pub: string;
  readonly signing: KeyPair;
}

function account(): Account & { readonly root: KeyPair } {
  const root = createKeyPair("account");
  return { pub: root.public, root, signing: createKeyPair("account") };
}

export function userOf(
  of: Account,
  name: string,
  permissions: Permissions = everything,
  key = createKeyPair("user"),
): User {
  const claims = userClaims({ subject: key.public, name, issuerAccount: of.pub, permissions, tags: [], iat });
  return { jwt: encodeJwt(claims, of.signing), key };
}

export interface TestSpace {
  readonly broker: Broker;
  readonly accounts: { readonly space: Account; readonly authority: Account; readonly callout: Account };
  /** The callout's own user, its curve key, and the deny-all user that clients present. */
  readonly callout: User;
  readonly xkey: KeyPair;
  readonly sentinel: User;
  /** A connection that may do everything in its account. */
  connect(account: Account, name: string): Promise<NatsConnection>;
  stop(): Promise<void>;
}

export async function startSpace(options: { readonly authTimeoutS?: number } = {}): Promise<TestSpace> {
  const operator = createKeyPair("operator");
  const [system, spaceAccount, authority, callout] = [account(), account(), account(), account()];
  const xkey = createKeyPair("curve");
  const calloutUser = userOf(callout, "callout");
  const sentinel = userOf(callout, "sentinel", nothing);
  const signed = (of: Account, name: string, jetstream: "unlimited" | "none" | "unset") => ({
    subject: of.pub,
    name,
    signingKeys: [of.signing.public],
    jetstream,
    iat,
  });
  const preload = [
    signed(system, "SYS", "unset"),
    signed(spaceAccount, "SPACE", "unlimited"),
    signed(authority, "AUTHORITY", "unlimited"),
    {
      ...signed(callout, "CALLOUT", "none"),
      authorization: {
        authUsers: [calloutUser.key.public],
        allowedAccounts: [spaceAccount.pub],
        xkey: xkey.public,
      },
    },
  ].map((claims) => `${claims.subject}: ${encodeJwt(accountClaims(claims), operator)}`);
  const operatorJwt = encodeJwt(
    operatorClaims({ subject: operator.public, name: "test", systemAccount: system.pub, iat }),
    operator,
  );
  const broker = await startBroker({
    jetstream: "",
    config: [
      `operator: ${operatorJwt}`,
      `system_account: ${system.pub}`,
      "resolver: MEMORY",
      `resolver_preload { ${preload.join("\n")} }`,
      `authorization { timeout: ${options.authTimeoutS ?? 5} }`,
    ].join("\n"),
  });
  const open: NatsConnection[] = [];
  return {
    broker,
    accounts: { space: spaceAccount, authority, callout },
    callout: calloutUser,
    xkey,
    sentinel,
    async connect(of, name) {
      const user = userOf(of, name);
      const connection = await connectUser({ servers: broker.url, name, user: () => user, reconnect: false });
      open.push(connection);
      return connection;
    },
    async stop() {
      await Promise.all(open.map((connection) => connection.close()));
      await broker.stop();
    },
  };
}
