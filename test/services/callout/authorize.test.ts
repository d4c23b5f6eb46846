import { pino } from "pino";
import { beforeAll, describe, expect, test } from "vitest";
import { Turns } from "../../../services/callout/admit.ts";
import { type Authorizing, authorize, type Decide } from "../../../services/callout/authorize.ts";
import { CONNECT_STEPS, type Reach } from "../../../services/callout/checks.ts";
import { explain } from "../../../services/callout/explain.ts";
import { ServerKeys } from "../../../services/callout/server-keys.ts";
import { EndpointStatistics } from "../../../services/host/statistics.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { AuthorityError, unavailable } from "../../../shared/errors.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { inboxRows } from "../../../shared/rows/connect.ts";
import { Server } from "./asking.ts";
import { issuer, reachOf } from "./connecting.ts";
import { Ledger } from "./ledger.ts";
import { freshNonce, grant, type Identity, install } from "./people.ts";

const curve = createKeyPair("curve");
const server = new Server(curve.public);
const reply = "$SYS._INBOX.abc.def";

function callout(decide: Decide, turns = new Turns(systemPorts)) {
  const lines: string[] = [];
  const sent: { readonly target: string; readonly answer: Uint8Array }[] = [];
  const statistics = new EndpointStatistics();
  const authorizing: Authorizing = {
    decide,
    turns,
    keys: new ServerKeys(curve),
    answerKeys: { account: createKeyPair("account").public, signing: createKeyPair("account") },
    statistics,
    ports: systemPorts,
    log: pino({}, { write: (line: string) => void lines.push(line) }),
    stopping: new AbortController().signal,
    send: (target, answer) => void sent.push({ target, answer }),
  };
  const ask = async (delivered: Parameters<typeof authorize>[1]) => {
    await authorize(authorizing, delivered);
    return sent.at(-1);
  };
  const logged = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { authorizing, statistics, sent, lines, logged, ask };
}

const counters = (statistics: EndpointStatistics) => {
  const target = { num_requests: 0, num_errors: 0, processing_time: 0, average_processing_time: 0 };
  statistics.copyTo(target);
  return { ...target, ...statistics.data() };
};

const admits: Decide = async (_asked, enter) => {
  enter({ number: 1, name: "turn" });
  return { jwt: "a.user.jwt" };
};
const refuses =
  (error: unknown): Decide =>
  async (_asked, enter) => {
    enter({ number: 6, name: "root" });
    throw error;
  };

test("an admission is sealed to its server, logged with its reference and counted", async () => {
  const { ask, statistics, logged } = callout(admits);
  const answer = await ask({ ...server.ask({ token: "t", name: "n" }), reply });
  expect(answer?.target).toBe(reply);
  expect(server.read(answer?.answer ?? new Uint8Array()).nats).toMatchObject({ jwt: "a.user.jwt" });
  const [line] = logged();
  expect(line).toMatchObject({
    msg: "connect",
    decision: "admitted",
    ref: expect.stringMatching(/^[A-Za-z0-9_-]{22}$/),
    serverId: server.key.public,
    clientHost: "192.0.2.7",
    clientId: 42,
    ms: expect.any(Number),
  });
  expect(counters(statistics)).toMatchObject({ num_requests: 1, num_errors: 0, inFlight: 0 });
});

test("a denial says code and reference, the log what was found", async () => {
  const cause = new AuthorityError("permission-denied", "not permitted", { reason: "the root has lapsed" });
  const { ask, lines, logged, statistics } = callout(refuses(cause));
  const answer = await ask({ ...server.ask({ token: "t", name: "n" }), reply });
  const [line] = logged();
  const { nats } = server.read(answer?.answer ?? new Uint8Array());
  expect(nats.error).toBe(`permission-denied ref=${line?.ref}`);
  expect(line).toMatchObject({ decision: "denied", step: 6, check: "root", reason: "the root has lapsed" });
  expect(counters(statistics)).toMatchObject({ num_requests: 1, num_errors: 1, codes: { "permission-denied": 1 } });
  expect((await explain(lines, String(line?.ref)))?.line.reason).toBe("the root has lapsed");
});

test.each([
  ["what is no refusal", new TypeError("x is not a function\nat y"), "internal"],
  ["a passed deadline", new AuthorityError("deadline-exceeded", "late"), "unavailable"],
  ["an unreadable store", unavailable("timeout"), "unavailable"],
])("%s is a denial, too", async (_what, error, code) => {
  const { ask } = callout(refuses(error));
  const answer = await ask({ ...server.ask(), reply });
  expect(server.read(answer?.answer ?? new Uint8Array()).nats.error).toMatch(new RegExp(`^${code} ref=`));
});

describe("silence, logged and counted:", () => {
  const asked = () => server.ask({ token: "t", name: "n" });
  const altered = () => {
    const { xkey, data } = asked();
    const copy = Uint8Array.from(data);
    copy[copy.length - 1] = (copy.at(-1) ?? 0) ^ 1;
    return { xkey, data: copy };
  };
  test.each([
    ["an altered request", () => ({ ...altered(), reply })],
    ["no curve key", () => ({ ...asked(), xkey: "", reply })],
    ["a foreign curve key", () => ({ ...asked(), xkey: createKeyPair("curve").public, reply })],
    ["no reply subject", () => ({ ...asked(), reply: "" })],
    ["a reply subject that is no inbox", () => ({ ...asked(), reply: "$KV.cotal_connect_demo.trust" })],
    ["a wildcard in the reply subject", () => ({ ...asked(), reply: "$SYS._INBOX.>" })],
  ])("%s", async (_what, delivered) => {
    const { ask, logged, statistics } = callout(admits);
    expect(await ask(delivered())).toBeUndefined();
    expect(logged()).toMatchObject([{ decision: "silent", reason: expect.any(String) }]);
    expect(counters(statistics)).toMatchObject({ num_requests: 1, num_errors: 1, codes: { silent: 1 } });
  });
});

test("a turn that does not come is denied without a decision's reads", async () => {
  const turns = new Turns(systemPorts, { atOnce: 1, turnMs: 50 });
  const seen: boolean[] = [];
  const { ask } = callout(async ({ inTime }) => {
    seen.push(inTime);
    if (!inTime) throw unavailable("late");
    return { jwt: "x" };
  }, turns);
  const held = await turns.take();
  const answer = await ask({ ...server.ask(), reply });
  expect(seen).toEqual([false]);
  expect(server.read(answer?.answer ?? new Uint8Array()).nats.error).toMatch(/^unavailable ref=/);
  held?.release();
  expect(turns.working).toBe(0);
});

describe("over rows", () => {
  let who: Identity;
  let reach: Reach;
  let ledger: Ledger;
  beforeAll(async () => {
    ledger = new Ledger();
    who = await install(ledger, grant());
    reach = reachOf(ledger);
  });
  const decide: Decide = async (asked, enter) => (await CONNECT_STEPS.run({ ...asked, reach }, enter)).user;

  test("a replayed request is answered for the same user, and leaves one row", async () => {
    const { ask } = callout(decide);
    const nonce = freshNonce();
    const asked = { ...server.ask({ token: await issuer.bearer(who), name: nonce }), reply };
    const first = await ask(asked);
    const row = ledger.peek(inboxRows.key({ nonce }));
    const second = await ask(asked);
    const [one, other] = [first, second].map((sent) => server.read(sent?.answer ?? new Uint8Array()));
    expect([one?.sub, other?.sub]).toEqual([asked.userNkey, asked.userNkey]);
    expect(ledger.peek(inboxRows.key({ nonce }))).toEqual(row);
  });

  test("no line of the log holds a bearer or a JWT", async () => {
    const { ask, lines } = callout(decide);
    await ask({ ...server.ask({ token: await issuer.bearer(who), name: freshNonce() }), reply });
    await ask({ ...server.ask({ token: await issuer.bearer(who), name: "short" }), reply });
    expect(lines).toHaveLength(2);
    expect(lines.join("")).not.toMatch(/eyJ/);
  });
});
