/** A space as `init` makes it, on a real broker, with its streams, and a hand that may write every row. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { type InitOptions, initSpace } from "../../services/offline/init.ts";
import type { HostedService, ServiceDeps } from "../../services/service.ts";
import { AuthorityClient } from "../../shared/client.ts";
import { encodeJwt, type Permissions, userClaims } from "../../shared/credentials/jwt.ts";
import { createKeyPair, keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { SelfSigned } from "../../shared/credentials/self-signed.ts";
import { permissionsOf } from "../../shared/credentials/user-permissions.ts";
import { provisionedUser } from "../../shared/credentials/users.ts";
import { connectUser, type User } from "../../shared/nats/connect.ts";
import { OwnedConnections } from "../../shared/nats/owned.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import type { Key } from "../../shared/rows/family.ts";
import { directoryStore } from "../../shared/secrets/directory.ts";
import { openFolder } from "../../shared/secrets/folder.ts";
import { loadCreds, loadSecret, SECRET, viewKeys } from "../../shared/secrets/keys.ts";
import { type SpaceSettings, spaceFiles } from "../../shared/secrets/settings.ts";
import type { SecretStore } from "../../shared/secrets/store.ts";
import { swap } from "../../shared/store/message.ts";
import { createMissing } from "../../shared/store/shape.ts";
import { Store } from "../../shared/store/store.ts";
import { Actor, Owner, Space, type Triple } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import { type Broker, startBroker } from "./broker.ts";
import { OUR_STREAMS } from "./store.ts";

const EVERYTHING: Permissions = { pub: { allow: [">"], deny: [] }, sub: { allow: [">"], deny: [] } };

/** Users of the space account through whom a test asks for operations. */
type Caller = "gateway_public" | "gateway_loopback" | "operator" | "platform_host";

export interface TestSpace {
  readonly space: Space;
  readonly broker: Broker;
  readonly stateDir: string;
  readonly settings: SpaceSettings;
  /** All of them. */
  readonly secrets: SecretStore;
  /** Reads and writes every row. */
  readonly store: Store;
  /** Connections that may do everything in their account. */
  readonly roots: Readonly<Record<"space" | "authority", NatsConnection>>;
  /** Writes a row over whatever is there; gives its revision. */
  put<V>(key: Key<V>, value: V): Promise<number>;
  /** What a service is started with; log lines go to `lines`. */
  deps(service: HostedService, more?: Partial<ServiceDeps> & { lines?: string[] }): Promise<ServiceDeps>;
  /** As a provisioned user. */
  client(name: Caller): Promise<AuthorityClient>;
  /** As anybody, on a connection that may publish under any triple: what the broker would refuse is tried, too. */
  clientAs(caller: Triple): AuthorityClient;
  /** As `local.auth`, on a user like the one that it signs for itself. */
  authClient(): Promise<AuthorityClient>;
  stop(): Promise<void>;
}

export async function startSpace(
  init: Partial<Pick<InitOptions, "settings" | "pins">> & { readonly streams?: boolean } = {},
): Promise<TestSpace> {
  const ports = systemPorts;
  const space = Space.parse("demo");
  const stateDir = await mkdtemp(join(tmpdir(), "state-"));
  const { streams = true, ...rest } = init;
  const { settings } = await initSpace({ stateDir, space, permissionsOf, ports, ...rest });
  const broker = await startBroker({
    jetstream: "limits { default_max_consumers: 100000 }",
    config: `authorization { timeout: 5 }\n${await readFile(join(stateDir, "broker", "broker.conf"), "utf8")}`,
  });
  const secrets = await directoryStore(stateDir);
  const keys = await loadSecret(secrets, space, SECRET.serviceKeys);
  const opened: NatsConnection[] = [];
  const owners: OwnedConnections[] = [];
  const enter = async (name: string, user: User): Promise<NatsConnection> => {
    const connection = await connectUser({ servers: broker.url, name, user: () => user, reconnect: true });
    opened.push(connection);
    return connection;
  };
  const root = ({ pub, signingSeed }: { readonly pub: string; readonly signingSeed: string }) =>
    enter("root", everythingUser(pub, signingSeed));
  const roots = { space: await root(keys.dataAccount), authority: await root(keys.authorityAccount) };
  if (streams) await createMissing({ space, connection: (account) => roots[account] }, OUR_STREAMS);
  const store = new Store({ space, ports, connections: roots, scanConnections: roots });
  const files = spaceFiles(await openFolder(stateDir), space);

  return {
    space,
    broker,
    stateDir,
    settings,
    secrets,
    store,
    roots,
    async put(key, value) {
      const found = await store.inspect(key);
      const revision = found.state === "row" ? found.entry.revision : found.state === "absent" ? 0 : found.revision;
      const [written = 0] = await store.commit([swap({ key, revision }, value)], ownWork(ports, 5_000));
      return written;
    },
    async deps(service, { lines = [], ...more } = {}) {
      const owned = new OwnedConnections({ servers: broker.url }, more.ports ?? ports);
      owners.push(owned);
      return {
        space,
        settings,
        servers: broker.url,
        secrets: await directoryStore(stateDir, viewKeys(space, service)),
        files,
        ports,
        log: pino({ level: "debug" }, { write: (line: string) => void lines.push(line) }),
        owned,
        instance: "1",
        hostUid: newUid(ports),
        standingTtlS: 900,
        development: false,
        signal: new AbortController().signal,
        version: "0.1.0",
        ...more,
      };
    },
    async client(name) {
      const creds = await loadCreds(secrets, space, name);
      const key = keyPairFromSeed(creds.seed);
      const { owner, actor, uid } = provisionedUser(space, name, key.public);
      const connection = await enter(name, { jwt: creds.jwt, key });
      const caller = { owner, actor, uid };
      return new AuthorityClient({ connection, space, caller, inboxPrefix: `_INBOX_${key.public}`, name, ports });
    },
    clientAs(caller) {
      return new AuthorityClient({
        connection: roots.space,
        space,
        caller,
        inboxPrefix: "_INBOX",
        name: "test",
        ports,
      });
    },
    async authClient() {
      const uid = newUid(ports);
      const { pub: account, signingSeed } = keys.dataAccount;
      const signer = keyPairFromSeed(signingSeed);
      const user = new SelfSigned({ space, service: "auth", uid, profile: "work", account, signer, ports }).user();
      const connection = await enter("auth", user);
      const caller = { owner: Owner.parse("local"), actor: Actor.parse("auth"), uid };
      const inboxPrefix = `_INBOX_${user.key.public}`;
      return new AuthorityClient({ connection, space, caller, inboxPrefix, name: "auth", ports });
    },
    async stop() {
      await Promise.all(owners.flatMap((owned) => owned.closeSteps("").map(({ run }) => run())));
      await Promise.all(opened.map((connection) => connection.close()));
      await broker.stop();
      await rm(stateDir, { recursive: true, force: true });
    },
  };
}

function everythingUser(account: string, signingSeed: string): User {
  const key = createKeyPair("user");
  const claims = userClaims({
    subject: key.public,
    name: "root",
    issuerAccount: account,
    permissions: EVERYTHING,
    tags: [],
    iat: Math.floor(systemPorts.now() / 1_000),
  });
  return { jwt: encodeJwt(claims, keyPairFromSeed(signingSeed)), key };
}
