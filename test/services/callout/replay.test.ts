import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Turns } from "../../../services/callout/admit.ts";
import { type Authorizing, authorize, type Delivered } from "../../../services/callout/authorize.ts";
import { CONNECT_STEPS, type Reach } from "../../../services/callout/checks.ts";
import { Issuances } from "../../../services/callout/issuances.ts";
import { XKEY_HEADER } from "../../../services/callout/open.ts";
import { ServerKeys } from "../../../services/callout/server-keys.ts";
import { startCallout } from "../../../services/callout/start.ts";
import { EndpointStatistics } from "../../../services/host/statistics.ts";
import { createKeyPair, keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { CALLOUT_SUBJECT } from "../../../shared/credentials/profiles/provisioned.ts";
import { connectUser } from "../../../shared/nats/connect.ts";
import { runCloseSteps } from "../../../shared/nats/owned.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { inboxRows } from "../../../shared/rows/connect.ts";
import { directoryStore } from "../../../shared/secrets/directory.ts";
import { loadCreds, loadSecret, SECRET } from "../../../shared/secrets/keys.ts";
import { freshNonce, grant, install, space } from "./people.ts";
import { startSpace, type TestSpace } from "./space.ts";

const ports = systemPorts;

let at: TestSpace;
let close: () => Promise<void>;
/** What the broker asked, as anybody would get it who listens in the callout account. */
const captured: Delivered[] = [];
const sent: { readonly target: string; readonly answer: Uint8Array }[] = [];
let authorizing: Authorizing;

beforeAll(async () => {
  at = await startSpace();
  at.callout.subscribe(CALLOUT_SUBJECT, {
    callback: (_, { headers, reply, data }) =>
      void captured.push({ xkey: headers?.get(XKEY_HEADER) ?? "", reply: reply ?? "", data: Uint8Array.from(data) }),
  });
  await at.callout.flush();
  const deps = await at.deps();
  const service = await startCallout(deps);
  close = async () => {
    await service.close();
    await runCloseSteps(deps.owned.closeSteps("callout", "work:callout", "store:callout"));
  };
  authorizing = await calloutOverTheSameRows();
});
afterAll(async () => {
  await close();
  await at.stop();
});

/** Whoever replays cannot publish where the broker asks; what the callout would do is shown on its own road. */
async function calloutOverTheSameRows(): Promise<Authorizing> {
  const secrets = await directoryStore(at.stateDir);
  const { dataAccount } = await loadSecret(secrets, space, SECRET.serviceKeys);
  const { account, xkey } = await loadSecret(secrets, space, SECRET.calloutKeys);
  const reach: Reach = {
    space,
    store: at.store,
    bearerKeys: { of: at.bearers.keyOf },
    signer: { space, account: dataAccount.pub, signing: keyPairFromSeed(dataAccount.signingSeed) },
    issuances: new Issuances(ports),
    ports,
    ready: () => true,
  };
  return {
    decide: async (asked, enter) => (await CONNECT_STEPS.run({ ...asked, reach }, enter)).user,
    turns: new Turns(ports),
    keys: new ServerKeys(keyPairFromSeed(xkey.seed)),
    answerKeys: { account: account.pub, signing: keyPairFromSeed(account.signingSeed) },
    statistics: new EndpointStatistics(),
    ports,
    log: pino({ level: "silent" }),
    stopping: new AbortController().signal,
    send: (target, answer) => void sent.push({ target, answer }),
  };
}

/** How many clients the broker has, but for the one that asks. */
async function connectionCount(): Promise<number> {
  const { jwt, seed } = await loadCreds(await directoryStore(at.stateDir), space, "custodian_system");
  const user = { jwt, key: keyPairFromSeed(seed) };
  const system = await connectUser({ servers: at.broker.url, name: "counts", user: () => user, reconnect: false });
  const id = system.info?.server_id;
  const answer = await system.request(`$SYS.REQ.SERVER.${id}.CONNZ`, "{}");
  await system.close();
  return answer.json<{ data: { num_connections: number } }>().data.num_connections - 1;
}

/** A real client's connect, and the sealed request that it made its broker send. */
async function connected() {
  captured.length = 0;
  const who = await install(at, grant());
  const nonce = freshNonce();
  const client = await at.connect(await at.bearers.bearer(who, { ttlS: 600 }), nonce);
  const [request] = captured;
  if (!request) throw new Error("nothing was captured");
  return { client, nonce, request };
}

test("a sealed request that is replayed is answered, and makes no second row and no second connection", async () => {
  const { client, nonce, request } = await connected();
  const key = inboxRows.key({ nonce });
  const held = await at.store.read(key);
  const connections = await connectionCount();
  sent.length = 0;
  await authorize(authorizing, request);
  expect(sent.map(({ target }) => target)).toEqual([request.reply]);
  // The broker has stopped waiting there; a late answer changes nothing.
  at.callout.publish(request.reply, sent[0]?.answer ?? new Uint8Array());
  await at.callout.flush();
  expect((await at.store.read(key))?.value).toEqual(held?.value);
  expect((await at.store.scan(inboxRows, {})).entries.filter((row) => row.key.key === key.key)).toHaveLength(1);
  expect(await connectionCount()).toBe(connections);
  expect(client.isClosed()).toBe(false);
  await client.close();
});

test("altered, or under another curve key, it is silence", async () => {
  const { client, request } = await connected();
  sent.length = 0;
  const altered = Uint8Array.from(request.data);
  altered[altered.length - 1] = (altered.at(-1) ?? 0) ^ 1;
  await authorize(authorizing, { ...request, data: altered });
  await authorize(authorizing, { ...request, xkey: createKeyPair("curve").public });
  await authorize(authorizing, { ...request, xkey: "" });
  expect(sent).toEqual([]);
  await client.close();
});

test("from another client of the callout account it does not even arrive", async () => {
  const { client, request } = await connected();
  const arrived = captured.length;
  const refused = at.callout.request(CALLOUT_SUBJECT, request.data, { timeout: 1_000 });
  await expect(refused).rejects.toThrow("Permissions Violation for Publish");
  await at.callout.flush();
  expect(captured).toHaveLength(arrived);
  await client.close();
});
