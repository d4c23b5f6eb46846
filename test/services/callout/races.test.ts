import { pino } from "pino";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CONNECT_STEPS, type Reach } from "../../../services/callout/checks.ts";
import { explain } from "../../../services/callout/explain.ts";
import { Issuances } from "../../../services/callout/issuances.ts";
import { type ServedCallout, serveCallout } from "../../../services/callout/serve.ts";
import { ServerKeys } from "../../../services/callout/server-keys.ts";
import { keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { isAuthorityError } from "../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { directoryStore } from "../../../shared/secrets/directory.ts";
import { loadSecret, SECRET } from "../../../shared/secrets/keys.ts";
import { freshNonce, grant, type Identity, install, keysOf, space } from "./people.ts";
import { startSpace, type TestSpace } from "./space.ts";

const ports = systemPorts;
let at: TestSpace;
let served: ServedCallout;
const lines: string[] = [];
/** Runs between the last read of step 4 and the one write of step 11. */
let meanwhile: () => Promise<unknown> = async () => {};

beforeAll(async () => {
  at = await startSpace();
  const secrets = await directoryStore(at.stateDir);
  const { dataAccount } = await loadSecret(secrets, space, SECRET.serviceKeys);
  const { account, xkey } = await loadSecret(secrets, space, SECRET.calloutKeys);
  const reach: Reach = {
    space,
    store: {
      read: (key, work) => at.store.read(key, work),
      nextRow: (key, from, work) => at.store.nextRow(key, from, work),
      async commit(messages, work) {
        await meanwhile();
        return at.store.commit(messages, work);
      },
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

async function outcome(who: Identity): Promise<{ code?: string | undefined; check?: string | undefined }> {
  const from = at.broker.log().length;
  const token = await at.bearers.bearer(who);
  const result = await at.connect(token, freshNonce()).catch((error: unknown) => error);
  if (!isAuthorityError(result)) return {};
  const line = await vi.waitFor(async () => {
    const ref = /returned an error: \S+ ref=(\S+)/.exec(at.broker.log().slice(from))?.[1];
    const found = ref === undefined ? undefined : await explain(lines, ref);
    if (!found) throw new Error("no explanation yet");
    return found.line;
  });
  return { code: line.code, check: line.check };
}

const person = () => install(at, grant({ actor: `cli_${newUid(ports)}` }));

test("a freeze that lands between reading and signing denies", async () => {
  const who = await person();
  const op = { opId: newUid(ports), kind: "retirement" as const };
  meanwhile = () => at.put(keysOf(who).gate, { lifecycleUid: who.uid, state: "frozen", generation: 1, op });
  expect(await outcome(who)).toEqual({ code: "permission-denied", check: "unmoved" });
});

test("a revoke that lands between reading and signing denies", async () => {
  const who = await person();
  meanwhile = () => at.put(keysOf(who).row, { ...who.row, state: "revoked" });
  expect(await outcome(who)).toEqual({ code: "permission-denied", check: "unmoved" });
});

test("a move of somebody else's row does not", async () => {
  const [who, other] = await Promise.all([person(), person()]);
  meanwhile = () => at.put(keysOf(other).row, { ...other.row, state: "revoked" });
  expect(await outcome(who)).toEqual({});
});

test("of connects that race a freeze, none is admitted once the freeze is acknowledged", async () => {
  const who = await person();
  meanwhile = async () => {};
  const token = await at.bearers.bearer(who);
  const op = { opId: newUid(ports), kind: "retirement" as const };
  let frozen = false;
  const late: boolean[] = [];
  const attempt = async () => {
    const began = frozen;
    const admitted = await at.connect(token, freshNonce()).then(
      () => true,
      () => false,
    );
    if (began) late.push(admitted);
  };
  const racing = Promise.all(Array.from({ length: 20 }, attempt));
  await at.put(keysOf(who).gate, { lifecycleUid: who.uid, state: "frozen", generation: 1, op });
  frozen = true;
  await Promise.all([racing, ...Array.from({ length: 10 }, attempt)]);
  expect(late).toEqual(Array.from({ length: 10 }, () => false));
});

test("an authority stream that cannot be read denies, at once", async () => {
  const who = await person();
  meanwhile = async () => {};
  await at.authority.request("$JS.API.STREAM.DELETE.KV_cotal_connect_demo", "", { timeout: 10_000 });
  expect(await outcome(who)).toEqual({ code: "unavailable", check: "rows" });
});
