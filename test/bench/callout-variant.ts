/**
 * One callout in a process of its own, so that its CPU can be told from the clients' and the broker's:
 * `node --import tsx callout-variant.ts library|rowless|full <state> <url>`. Speaks over IPC.
 */
import { Algorithms, decode, encodeAuthorizationResponse, encodeUser } from "@nats-io/jwt";
import { fromCurveSeed, fromPublic, fromSeed } from "@nats-io/nkeys";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { CONNECT_STEPS, type Reach } from "../../services/callout/checks.ts";
import { Issuances } from "../../services/callout/issuances.ts";
import { serveCallout } from "../../services/callout/serve.ts";
import { ServerKeys } from "../../services/callout/server-keys.ts";
import { startCallout } from "../../services/callout/start.ts";
import { BearerKeys } from "../../shared/bearer-keys.ts";
import { parseCreds } from "../../shared/credentials/creds.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { CALLOUT_QUEUE, CALLOUT_SUBJECT } from "../../shared/credentials/profiles/provisioned.ts";
import { connectUser } from "../../shared/nats/connect.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import { trustRows } from "../../shared/rows/connect.ts";
import type { Entry, Key } from "../../shared/rows/family.ts";
import { directoryStore } from "../../shared/secrets/directory.ts";
import { openFolder } from "../../shared/secrets/folder.ts";
import { loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { spaceFiles } from "../../shared/secrets/settings.ts";
import { Store } from "../../shared/store/store.ts";
import { everythingUser } from "../kit/ground.ts";
import { space } from "../services/callout/people.ts";
import { calloutDeps } from "../services/callout/space.ts";
import { SMALL } from "./callout-costs.ts";

const ports = systemPorts;
const [variant = "", stateDir = "", url = ""] = process.argv.slice(2);
const secrets = await directoryStore(stateDir);
const { dataAccount } = await loadSecret(secrets, space, SECRET.serviceKeys);
const { account, calloutCreds, xkey } = await loadSecret(secrets, space, SECRET.calloutKeys);
const creds = parseCreds(calloutCreds);
const user = { jwt: creds.jwt, key: keyPairFromSeed(creds.seed) };
const log = pino({ level: "silent" });

const connection = () => connectUser({ servers: url, name: "callout", user: () => user, reconnect: false });

/** As one writes it with the JWT library alone. */
async function library(): Promise<void> {
  const nc = await connection();
  const curve = fromCurveSeed(Buffer.from(xkey.seed));
  const issuer = fromPublic(account.pub);
  const signer = fromSeed(Buffer.from(account.signingSeed));
  const dataSigner = fromSeed(Buffer.from(dataAccount.signingSeed));
  const answer = async (server: string, data: Uint8Array): Promise<Uint8Array> => {
    const opened = curve.open(data, server);
    if (!opened) throw new Error("the box does not open");
    const { iss = "", nats } = decode<{ readonly user_nkey: string }>(Buffer.from(opened).toString());
    const key = fromPublic(nats.user_nkey ?? "");
    const jwt = await encodeUser("bench", key, fromPublic(dataAccount.pub), { ...SMALL }, { signer: dataSigner });
    const options = { signer, algorithm: Algorithms.v2 };
    const response = await encodeAuthorizationResponse(key, fromPublic(iss), issuer, { jwt }, options);
    return curve.seal(Buffer.from(response), server);
  };
  nc.subscribe(CALLOUT_SUBJECT, {
    queue: CALLOUT_QUEUE,
    callback: (_error, message) => {
      const server = message.headers?.get("Nats-Server-Xkey") ?? "";
      void answer(server, message.data).then((sealed) => message.respond(sealed));
    },
  });
  await nc.flush();
}

/** The full one, but that its rows are in memory: each is read once, and none is written. */
async function rowless(): Promise<void> {
  const { connection: authority, store } = await rowsOnce();
  const reach: Reach = {
    space,
    store,
    bearerKeys: new BearerKeys(async () => {
      const trust = await store.read(trustRows.key({}));
      if (!trust) throw new Error("no trust");
      return trust.value;
    }, ports),
    signer: { space, account: dataAccount.pub, signing: keyPairFromSeed(dataAccount.signingSeed) },
    issuances: new Issuances(ports),
    ports,
    ready: () => !authority.isClosed(),
  };
  await serveCallout({
    space,
    instanceId: newUid(ports),
    version: "0.1.0",
    connection: await connection(),
    decide: async (asked, enter) => (await CONNECT_STEPS.run({ ...asked, reach }, enter)).user,
    keys: new ServerKeys(keyPairFromSeed(xkey.seed)),
    answerKeys: { account: account.pub, signing: keyPairFromSeed(account.signingSeed) },
    ports,
    log,
  });
}

async function rowsOnce(): Promise<{ connection: NatsConnection; store: Reach["store"] }> {
  const { authorityAccount } = await loadSecret(secrets, space, SECRET.serviceKeys);
  const root = everythingUser(authorityAccount);
  const connection = await connectUser({ servers: url, name: "rows", user: () => root, reconnect: false });
  const real = new Store({ space, ports, connections: { authority: connection } });
  const kept = new Map<string, Promise<Entry<unknown> | undefined>>();
  const store = {
    read<V>(key: Key<V>): Promise<Entry<V> | undefined> {
      // Nobody's nonce is ever there: it is drawn for one connect.
      if (key.key.startsWith("inbox.")) return Promise.resolve(undefined);
      const found = kept.get(key.key) ?? real.read(key);
      kept.set(key.key, found);
      return found as Promise<Entry<V> | undefined>;
    },
    nextRow: async () => undefined,
    commit: async () => [1],
  };
  return { connection, store };
}

async function full(): Promise<void> {
  const settings = await spaceFiles(await openFolder(stateDir), space).settings(secrets.identity);
  await startCallout({ ...(await calloutDeps(stateDir, url, settings, () => {})), log });
}

const variants: Readonly<Record<string, () => Promise<void>>> = { library, rowless, full };
await variants[variant]?.();
process.on("message", () => process.send?.(process.cpuUsage()));
process.on("disconnect", () => process.exit());
process.send?.("serving");
