/** The ground of a space with bearers of the test's own, as the callout needs no other service. */
import type { NatsConnection } from "@nats-io/transport-node";
import { exportJWK } from "jose";
import { pino } from "pino";
import type { CalloutDeps } from "../../../services/callout/connections.ts";
import { keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import type { User } from "../../../shared/nats/connect.ts";
import { OwnedConnections } from "../../../shared/nats/owned.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { trustRows } from "../../../shared/rows/connect.ts";
import type { Key } from "../../../shared/rows/family.ts";
import { directoryStore } from "../../../shared/secrets/directory.ts";
import { decodeCreds, loadCreds, loadSecret, SECRET, viewKeys } from "../../../shared/secrets/keys.ts";
import type { SpaceSettings } from "../../../shared/secrets/settings.ts";
import type { Store } from "../../../shared/store/store.ts";
import type { Digest } from "../../../shared/tokens.ts";
import type { Broker } from "../../kit/broker.ts";
import { everythingUser, startGround } from "../../kit/ground.ts";
import { type BearerIssuer, bearerIssuer, issuer, space } from "./people.ts";

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
  put<V>(key: Key<V>, value: V): Promise<number>;
  /** A client's connection: sentinel, bearer and nonce. */
  connect(token: string, nonce: string): Promise<NatsConnection>;
  operator(): Promise<NatsConnection>;
  /** What a service is started with; its log goes to `lines`. */
  deps(lines?: string[]): Promise<CalloutDeps>;
  stop(): Promise<void>;
}

export async function startSpace(): Promise<TestSpace> {
  const ground = await startGround();
  const { broker, stateDir, settings, files, secrets, store, roots, put, enter, stop } = ground;
  const { account, calloutCreds } = await loadSecret(secrets, space, SECRET.calloutKeys);
  // Only who is listed is not sent to the callout.
  const calloutKey = keyPairFromSeed(decodeCreds("callout", calloutCreds).seed);
  const callout = await enter("root", everythingUser(account, calloutKey));
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
  const creds = await files.sentinel();
  const sentinel = { jwt: creds.jwt, key: keyPairFromSeed(creds.seed) };
  return {
    broker,
    stateDir,
    settings,
    sentinel,
    bearers,
    store,
    space: roots.space,
    authority: roots.authority,
    callout,
    put,
    connect: (token, nonce) => enter(nonce, sentinel, { inboxPrefix: `_INBOX_${nonce}`, token, reconnect: false }),
    async operator() {
      const { jwt, seed } = await loadCreds(secrets, space, "operator_callout");
      // As the `nats` tool has it.
      return enter("operator", { jwt, key: keyPairFromSeed(seed) }, { inboxPrefix: "_INBOX" });
    },
    deps: (lines = []) => calloutDeps(stateDir, broker.url, settings, (line) => void lines.push(line)),
    stop,
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
