/** What services stand on: the state of a space as `init` makes it, its broker, its streams, and a hand that may write every row. */
import { rmSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jwtAuthenticator } from "@nats-io/nats-core";
import type { NatsConnection } from "@nats-io/transport-node";
import { type InitOptions, initSpace } from "../../services/offline/init.ts";
import { encodeJwt, identityTags, type Permissions, userClaims } from "../../shared/credentials/jwt.ts";
import { createKeyPair, keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { permissionsOf } from "../../shared/credentials/user-permissions.ts";
import { type ConnectUserOptions, connectUser, type User } from "../../shared/nats/connect.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import type { Key } from "../../shared/rows/family.ts";
import { directoryStore } from "../../shared/secrets/directory.ts";
import { openFolder } from "../../shared/secrets/folder.ts";
import { loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { type SpaceFiles, type SpaceSettings, spaceFiles } from "../../shared/secrets/settings.ts";
import type { SecretStore } from "../../shared/secrets/store.ts";
import { swap } from "../../shared/store/message.ts";
import { createMissing } from "../../shared/store/shape.ts";
import { Store } from "../../shared/store/store.ts";
import { Space } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import { type Broker, startBroker } from "./broker.ts";
import { startCluster } from "./cluster.ts";
import { OUR_STREAMS } from "./store.ts";

const EVERYTHING: Permissions = { pub: { allow: [">"], deny: [] }, sub: { allow: [">"], deny: [] } };
const JETSTREAM = "limits { default_max_consumers: 100000 }";

/** Folders of this process: a failing start or a test that is cut off leaves none behind. */
const folders = new Set<string>();
process.on("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export interface Ground {
  readonly space: Space;
  /** The only server, or the first of three. */
  readonly broker: Broker;
  readonly brokers: readonly Broker[];
  readonly servers: string[];
  readonly stateDir: string;
  readonly settings: SpaceSettings;
  readonly files: SpaceFiles;
  /** All of them. */
  readonly secrets: SecretStore;
  /** Reads and writes every row. */
  readonly store: Store;
  /** Connections that may do everything in their account. */
  readonly roots: Readonly<Record<"space" | "authority", NatsConnection>>;
  /** Writes a row over whatever is there; gives its revision. */
  put<V>(key: Key<V>, value: V): Promise<number>;
  /** A connection of any user, closed with the ground. */
  enter(
    name: string,
    user: User,
    more?: Partial<Pick<ConnectUserOptions, "inboxPrefix" | "token" | "reconnect">>,
  ): Promise<NatsConnection>;
  stop(): Promise<void>;
}

export interface GroundOptions extends Partial<Pick<InitOptions, "settings" | "pins">> {
  /** `false` leaves it to `auth` to make them. */
  readonly streams?: boolean;
  /** Three servers. */
  readonly cluster?: boolean;
  /** Seconds that the broker gives a client for its CONNECT; an eviction settles no sooner. */
  readonly authTimeoutS?: number;
  /** More of the broker's own settings, and of those inside its `jetstream` block. */
  readonly broker?: { readonly config?: string; readonly jetstream?: string };
}

export async function startGround(options: GroundOptions = {}): Promise<Ground> {
  const { streams = true, cluster = false, authTimeoutS = 5, broker: more = {}, ...init } = options;
  const ports = systemPorts;
  const space = Space.parse("demo");
  const stateDir = await mkdtemp(join(tmpdir(), "state-"));
  folders.add(stateDir);
  const { settings } = await initSpace({ stateDir, space, permissionsOf, ports, ...init });
  const secrets = await directoryStore(stateDir);
  const keys = await loadSecret(secrets, space, SECRET.serviceKeys);
  const root = (account: "dataAccount" | "authorityAccount") => everythingUser(keys[account]);

  const shipped = await readFile(join(stateDir, "broker", "broker.conf"), "utf8");
  const config = `authorization { timeout: ${authTimeoutS} }\n${shipped}\n${more.config ?? ""}`;
  const jetstream = `${JETSTREAM}\n${more.jetstream ?? ""}`;
  const { brokers, stop } = await startServers({ config, jetstream }, cluster, root("dataAccount"));
  const [broker] = brokers;
  if (!broker) throw new Error("no server");
  const servers = brokers.map(({ url }) => url);

  const opened: NatsConnection[] = [];
  const enter: Ground["enter"] = async (name, user, more = {}) => {
    const connection = await connectUser({ servers, name, user: () => user, reconnect: true, ...more });
    opened.push(connection);
    return connection;
  };
  const [inSpace, inAuthority] = await Promise.all([
    enter("root", root("dataAccount")),
    enter("root", root("authorityAccount")),
  ]);
  const roots = { space: inSpace, authority: inAuthority };
  if (streams) await createMissing({ space, connection: (account) => roots[account] }, OUR_STREAMS);
  const store = new Store({ space, ports, connections: roots, scanConnections: roots });

  return {
    space,
    broker,
    brokers,
    servers,
    stateDir,
    settings,
    files: spaceFiles(await openFolder(stateDir), space),
    secrets,
    store,
    roots,
    async put(key, value) {
      const found = await store.inspect(key);
      const revision = found.state === "row" ? found.entry.revision : found.state === "absent" ? 0 : found.revision;
      const [written = 0] = await store.commit([swap({ key, revision }, value)], ownWork(ports, 5_000));
      return written;
    },
    enter,
    async stop() {
      await Promise.all(opened.map((connection) => connection.close()));
      await stop();
      await rm(stateDir, { recursive: true, force: true });
      folders.delete(stateDir);
    },
  };
}

async function startServers(
  given: { readonly config: string; readonly jetstream: string },
  cluster: boolean,
  probe: User,
) {
  if (!cluster) {
    const broker = await startBroker(given);
    return { brokers: [broker], stop: () => broker.stop() };
  }
  const authenticator = jwtAuthenticator(probe.jwt, new TextEncoder().encode(probe.key.seed));
  return startCluster({ ...given, probe: { authenticator } });
}

/** May do everything in the account. */
export function everythingUser(
  { pub, signingSeed }: { readonly pub: string; readonly signingSeed: string },
  key = createKeyPair("user"),
): User {
  const claims = userClaims({
    subject: key.public,
    name: "root",
    issuerAccount: pub,
    permissions: EVERYTHING,
    // Without a principal no sweep of the account would be complete (lifecycles §2.3).
    tags: identityTags("local", "root", newUid(systemPorts)),
    iat: Math.floor(systemPorts.now() / 1_000),
  });
  return { jwt: encodeJwt(claims, keyPairFromSeed(signingSeed)), key };
}
