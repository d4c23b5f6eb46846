/** A space as `init` makes it, on a real broker, with its streams and a hand that may write every row. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NatsConnection } from "@nats-io/transport-node";
import { exportJWK } from "jose";
import { pino } from "pino";
import type { CalloutDeps } from "../../../services/callout/connections.ts";
import { initSpace } from "../../../services/offline/init.ts";
import { encodeJwt, type Permissions, userClaims } from "../../../shared/credentials/jwt.ts";
import { createKeyPair, type KeyPair, keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { permissionsOf } from "../../../shared/credentials/user-permissions.ts";
import { connectUser, type User } from "../../../shared/nats/connect.ts";
import { OwnedConnections } from "../../../shared/nats/owned.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { trustRows } from "../../../shared/rows/connect.ts";
import type { Key } from "../../../shared/rows/family.ts";
import { directoryStore } from "../../../shared/secrets/directory.ts";
import { openFolder } from "../../../shared/secrets/folder.ts";
import { decodeCreds, loadCreds, loadSecret, SECRET, viewKeys } from "../../../shared/secrets/keys.ts";
import { type SpaceSettings, spaceFiles } from "../../../shared/secrets/settings.ts";
import { swap } from "../../../shared/store/message.ts";
import { createMissing } from "../../../shared/store/shape.ts";
import { Store } from "../../../shared/store/store.ts";
import type { Digest } from "../../../shared/tokens.ts";
import { ownWork } from "../../../shared/work.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { OUR_STREAMS } from "../../kit/store.ts";
import { type BearerIssuer, bearerIssuer, issuer, space } from "./people.ts";

const EVERYTHING: Permissions = { pub: { allow: [">"], deny: [] }, sub: { allow: [">"], deny: [] } };
const ports = systemPorts;

export interface TestSpace {
  readonly broker: Broker;
  readonly stateDir: string;
  readonly settings: SpaceSettings;
  /** What clients present beside their bearer. */
  readonly sentinel: User;
  readonly bearers: BearerIssuer;
  /** Reads every row. */
  readonly store: Store;
  /** May do everything in the account; on the callout's own user in the callout account. */
  readonly space: NatsConnection;
  readonly authority: NatsConnection;
  readonly callout: NatsConnection;
  /** Writes a row over whatever is there. */
  put<V>(key: Key<V>, value: V): Promise<void>;
  /** A client's connection: sentinel, bearer and nonce. */
  connect(token: string, nonce: string): Promise<NatsConnection>;
  operator(): Promise<NatsConnection>;
  /** What a service is started with; its log goes to `lines`. */
  deps(lines?: string[]): Promise<CalloutDeps>;
  stop(): Promise<void>;
}

export async function startSpace(): Promise<TestSpace> {
  const stateDir = await mkdtemp(join(tmpdir(), "state-"));
  const { settings } = await initSpace({ stateDir, space, permissionsOf, ports });
  const broker = await startBroker({
    jetstream: "limits { default_max_consumers: 100000 }",
    config: `authorization { timeout: 5 }\n${await readFile(join(stateDir, "broker", "broker.conf"), "utf8")}`,
  });
  const secrets = await directoryStore(stateDir);
  const keys = await loadSecret(secrets, space, SECRET.serviceKeys);
  const callout = await loadSecret(secrets, space, SECRET.calloutKeys);
  const sentinel = await spaceFiles(await openFolder(stateDir), space).sentinel();
  const open: NatsConnection[] = [];
  const enter = async (name: string, user: User, inboxPrefix?: string): Promise<NatsConnection> => {
    const options = { servers: broker.url, name, user: () => user, reconnect: true };
    const connection = await connectUser({ ...options, ...(inboxPrefix === undefined ? {} : { inboxPrefix }) });
    open.push(connection);
    return connection;
  };
  const root = ({ pub, signingSeed }: { readonly pub: string; readonly signingSeed: string }, key?: KeyPair) =>
    enter("root", everythingUser(pub, keyPairFromSeed(signingSeed), key));
  const [spaceRoot, authorityRoot, calloutRoot] = await Promise.all([
    root(keys.dataAccount),
    root(keys.authorityAccount),
    // Only who is listed is not sent to the callout.
    root(callout.account, keyPairFromSeed(decodeCreds("callout", callout.calloutCreds).seed)),
  ]);
  const accounts = { space: spaceRoot, authority: authorityRoot };
  await createMissing({ space, connection: (account) => accounts[account] }, OUR_STREAMS);
  const store = new Store({ space, ports, connections: accounts });
  const put = async <V>(key: Key<V>, value: V): Promise<void> => {
    const found = await store.inspect(key);
    const revision = found.state === "row" ? found.entry.revision : found.state === "unreadable" ? found.revision : 0;
    await store.commit([swap({ key, revision }, value)], ownWork(ports, 5_000));
  };
  const bearers = await bearerIssuer();
  const jwk = await exportJWK(bearers.publicKey);
  await put(trustRows.key({}), {
    v: 1,
    rev: 1,
    issuer,
    activeKid: bearers.kid,
    keys: [{ kty: "OKP", crv: "Ed25519", x: jwk.x ?? "", kid: bearers.kid, alg: "EdDSA", use: "sig" }],
    ownerCommitment: `sha256:${"0".repeat(64)}` as Digest,
  });
  const sentinelUser = { jwt: sentinel.jwt, key: keyPairFromSeed(sentinel.seed) };
  return {
    broker,
    stateDir,
    settings,
    sentinel: sentinelUser,
    bearers,
    store,
    space: spaceRoot,
    authority: authorityRoot,
    callout: calloutRoot,
    put,
    async connect(token, nonce) {
      const connection = await connectUser({
        servers: broker.url,
        name: nonce,
        inboxPrefix: `_INBOX_${nonce}`,
        user: () => sentinelUser,
        token,
        reconnect: false,
      });
      open.push(connection);
      return connection;
    },
    async operator() {
      const creds = await loadCreds(secrets, space, "operator_callout");
      // As the `nats` tool has it.
      return enter("operator", { jwt: creds.jwt, key: keyPairFromSeed(creds.seed) }, "_INBOX");
    },
    deps: (lines = []) => calloutDeps(stateDir, broker.url, settings, (line) => void lines.push(line)),
    async stop() {
      await Promise.all(open.map((connection) => connection.close()));
      await broker.stop();
      await rm(stateDir, { recursive: true, force: true });
    },
  };
}

/** What the callout of a space is started with. */
export async function calloutDeps(
  stateDir: string,
  servers: string,
  settings: SpaceSettings,
  write: (line: string) => void,
): Promise<CalloutDeps> {
  const log = pino({ level: "debug" }, { write });
  return {
    space,
    settings,
    secrets: await directoryStore(stateDir, viewKeys(space, "callout")),
    ports,
    log,
    owned: new OwnedConnections({ servers }, ports),
    signal: new AbortController().signal,
    version: "0.1.0",
  };
}

function everythingUser(account: string, signer: KeyPair, key = createKeyPair("user")): User {
  const claims = userClaims({
    subject: key.public,
    name: "root",
    issuerAccount: account,
    permissions: EVERYTHING,
    tags: [],
    iat: Math.floor(ports.now() / 1_000),
  });
  return { jwt: encodeJwt(claims, signer), key };
}
