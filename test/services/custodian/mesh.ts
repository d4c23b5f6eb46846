/** The accounts of one space under an operator: system, space, authority; users signed as the services sign them. */
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { Custodian } from "../../../services/custodian/custodian.ts";
import { type CustodianLimits, SystemAccount } from "../../../services/custodian/system.ts";
import { accountClaims, encodeJwt, identityTags, operatorClaims, userClaims } from "../../../shared/credentials/jwt.ts";
import { createKeyPair, type KeyPair } from "../../../shared/credentials/nkeys.ts";
import { CUSTODIAN } from "../../../shared/limits.ts";
import { connectUser, type User } from "../../../shared/nats/connect.ts";
import { systemPorts } from "../../../shared/ports.ts";
import type { AccountNkey, Principal } from "../../../shared/tokens.ts";

export type AccountName = "system" | "space" | "authority";

const now = (): number => Math.floor(Date.now() / 1000);
const everything = { pub: { allow: [">"], deny: [] }, sub: { allow: [">"], deny: [] } };
const UID = "a".repeat(26);

/** Waits that fit servers of this machine, and clients that come back within half a second. */
const QUICK: CustodianLimits = {
  ...CUSTODIAN,
  discoverQuietMs: 50,
  discoverMinMs: 100,
  discoverMaxMs: 1_000,
  settleBaseMs: 100,
  afterKickMs: 900,
};

export class Mesh {
  readonly accounts: Readonly<Record<AccountName, KeyPair>> = {
    system: createKeyPair("account"),
    space: createKeyPair("account"),
    authority: createKeyPair("account"),
  };
  readonly #operator = createKeyPair("operator");
  readonly #open: NatsConnection[] = [];

  /** What a server's configuration needs. */
  get config(): string {
    const { system } = this.accounts;
    const operator = encodeJwt(
      operatorClaims({ subject: this.#operator.public, name: "op", systemAccount: system.public, iat: now() }),
      this.#operator,
    );
    const preload = (Object.keys(this.accounts) as AccountName[]).map(
      (name) => `${this.accounts[name].public}: ${this.#account(name)}`,
    );
    return [
      `operator: ${operator}`,
      `system_account: ${system.public}`,
      "resolver: MEMORY",
      `resolver_preload { ${preload.join("\n")} }`,
      "authorization { timeout: 1 }",
    ].join("\n");
  }

  /** A user tagged as `principal`, or as several, or as nobody. */
  user(account: AccountName, ...principals: string[]): User {
    const key = createKeyPair("user");
    const tags = principals.flatMap((principal) => {
      const [owner = "", actor = ""] = principal.split(".");
      return identityTags(owner, actor, UID);
    });
    const jwt = encodeJwt(
      userClaims({
        subject: key.public,
        name: "test",
        issuerAccount: this.accounts[account].public,
        permissions: everything,
        tags,
        iat: now(),
      }),
      this.accounts[account],
    );
    return { key, jwt };
  }

  async connect(servers: string | string[], user: User, more: { reconnect?: boolean } = {}): Promise<NatsConnection> {
    const options = { servers, name: "test", user: () => user, reconnect: more.reconnect ?? false };
    const connection = await connectUser(options);
    this.#open.push(connection);
    return connection;
  }

  /** A custodian of this space, connected to one of the servers. */
  async custodian(
    servers: string | string[],
    more: { expectedServers?: number; limits?: Partial<CustodianLimits> } = {},
  ): Promise<Custodian> {
    const user = this.user("system", "local.custodian_system");
    const connection = await this.connect(servers, user);
    const { space, authority } = this.accounts;
    return new Custodian({
      system: new SystemAccount({
        connection,
        inboxPrefix: `_INBOX_${user.key.public}`,
        ports: systemPorts,
        limits: { ...QUICK, ...more.limits },
      }),
      connected: () => !connection.isClosed(),
      accounts: { space: space.public as AccountNkey, authority: authority.public as AccountNkey },
      ...(more.expectedServers === undefined ? {} : { expectedServers: more.expectedServers }),
      untouchable: new Set(["local.auth" as Principal, "local.custodian" as Principal]),
      ports: systemPorts,
      log: pino({ level: "silent" }),
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#open.splice(0).map((connection) => connection.close()));
  }

  #account(name: AccountName): string {
    const claims = accountClaims({
      subject: this.accounts[name].public,
      name,
      signingKeys: [],
      jetstream: name === "system" ? "unset" : "unlimited",
      iat: now(),
    });
    return encodeJwt(claims, this.#operator);
  }
}
