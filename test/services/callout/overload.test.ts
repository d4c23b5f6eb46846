import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CONNECT_STEPS, type Reach } from "../../../services/callout/checks.ts";
import { Issuances } from "../../../services/callout/issuances.ts";
import { type ServedCallout, serveCallout } from "../../../services/callout/serve.ts";
import { ServerKeys } from "../../../services/callout/server-keys.ts";
import { keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { CALLOUT } from "../../../shared/limits.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { directoryStore } from "../../../shared/secrets/directory.ts";
import { loadSecret, SECRET } from "../../../shared/secrets/keys.ts";
import { freshNonce, grant, install, space } from "./people.ts";
import { startSpace, type TestSpace } from "./space.ts";

const ports = systemPorts;

let at: TestSpace;
let served: ServedCallout;
const lines: string[] = [];
const actor = "cli";
/** How many connects have read their actor's row for the first time. */
let reading = 0;
/** What those reads wait for. */
let release = (): void => {};
const slow = new Promise<void>((resolve) => {
  release = resolve;
});

beforeAll(async () => {
  at = await startSpace();
  const secrets = await directoryStore(at.stateDir);
  const { dataAccount } = await loadSecret(secrets, space, SECRET.serviceKeys);
  const { account, xkey } = await loadSecret(secrets, space, SECRET.calloutKeys);
  const reach: Reach = {
    space,
    store: {
      async read(key, work) {
        if (key.family === actorRows) {
          reading += 1;
          await slow;
        }
        return at.store.read(key, work);
      },
      nextRow: (key, from, work) => at.store.nextRow(key, from, work),
      commit: (messages, work) => at.store.commit(messages, work),
    },
    bearerKeys: { of: at.bearers.keyOf },
    signer: { space, account: dataAccount.pub, signing: keyPairFromSeed(dataAccount.signingSeed) },
    issuances: new Issuances(ports),
    ports,
    ready: () => true,
  };
  served = await serveCallout({
    space,
    instanceId: newUid(ports),
    version: "0.1.0",
    connection: at.callout,
    decide: async (asked, enter) => (await CONNECT_STEPS.run({ ...asked, reach }, enter)).user,
    keys: new ServerKeys(keyPairFromSeed(xkey.seed)),
    answerKeys: { account: account.pub, signing: keyPairFromSeed(account.signingSeed) },
    ports,
    log: pino({}, { write: (line: string) => void lines.push(line) }),
  });
});
afterAll(async () => {
  await served.drain();
  await at.stop();
});

test("a storm over a slow store admits as many as have their turn; the others are denied in time, and read nothing", async () => {
  const token = await at.bearers.bearer(await install(at, grant({ actor })));
  const late = 8;
  const attempt = () =>
    at.connect(token, freshNonce()).then(
      async (connection) => {
        await connection.close();
        return "admitted";
      },
      (error: { code?: string }) => error.code,
    );
  const first = Array.from({ length: CALLOUT.atOnce }, attempt);
  await expect.poll(() => reading).toBe(CALLOUT.atOnce);
  const began = performance.now();
  const after = await Promise.all(Array.from({ length: late }, attempt));
  expect(after).toEqual(Array(late).fill("unauthenticated"));
  expect(performance.now() - began).toBeLessThan(5_000); // the broker itself would have given up
  expect(reading).toBe(CALLOUT.atOnce);
  const denied = lines.map((line): object => JSON.parse(line));
  expect(denied).toEqual(
    Array(late).fill(expect.objectContaining({ decision: "denied", code: "unavailable", step: 1, check: "turn" })),
  );
  release();
  expect(await Promise.all(first)).toEqual(Array(CALLOUT.atOnce).fill("admitted"));
});
