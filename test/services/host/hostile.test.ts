/** Bytes made to break a service, sent to every endpoint: each is refused or dropped, and the service answers after it. */
import { headers } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { HostedService } from "../../../services/service.ts";
import type { Json } from "../../../shared/canonical.ts";
import type { Operation, ServiceName } from "../../../shared/contracts/operation.ts";
import { WIRE } from "../../../shared/limits.ts";
import { loadSecret, SECRET } from "../../../shared/secrets/keys.ts";
import { everythingUser } from "../../kit/ground.ts";
import { discover, statistics } from "../../kit/micro.ts";
import { type Draft, envelopeOf, Rail, type RailReply, subjectOf } from "../../kit/rail.ts";
import { RawClient } from "../../kit/raw.ts";
import { startSpace, type TestSpace } from "../../kit/space.ts";
import { sequences } from "../../kit/unchanged.ts";
import { everyOperation } from "../../shared/contracts/every-operation.ts";

const SERVICES = ["custodian", "auth", "exchange"] as const satisfies readonly HostedService[];
/** Requests at once: places are for 224 strangers. */
const AT_ONCE = 100;
const SECRET_TEXT = "sEcReT-8f3a";

let space: TestSpace;
let rail: Rail;
let raw: RawClient;
let before: Awaited<ReturnType<typeof sequences>>;
let operations: readonly Operation[];

beforeAll(async () => {
  space = await startSpace({ services: SERVICES });
  rail = await Rail.open(space);
  const { dataAccount } = await loadSecret(space.secrets, space.space, SECRET.serviceKeys);
  raw = await RawClient.open(space.broker.port, everythingUser(dataAccount));
  const all = await Promise.all(SERVICES.map((service) => statistics(space.roots.space, service)));
  operations = everyOperation.filter(({ service, name }) => all[SERVICES.indexOf(service)]?.has(name));
  before = await sequences(space);
});
afterAll(async () => {
  raw.close();
  await space.stop();
});

/** Nothing was written, nothing is deaf, nothing was lost on the way. */
afterEach(async () => {
  for (const service of SERVICES) {
    await discover(space.roots.space, "PING", service);
    const reply = await rail.send(rail.draft(describeOf(service)));
    expect(reply).toMatchObject({ ok: true });
    for (const [name, { data }] of await statistics(space.roots.space, service)) {
      expect(data.inFlight, name).toBe(0);
    }
  }
  expect(space.hosts.flatMap(({ services }) => services).every((service) => service.ready())).toBe(true);
  expect(await sequences(space)).toEqual(before);
});

function describeOf(service: ServiceName): Operation {
  const found = everyOperation.find((one) => one.service === service && one.name === "describe");
  if (!found) throw new Error(`${service} has no describe`);
  return found;
}

/** Sends all and gives each reply; one line of printable ASCII in every header and message. */
async function sendAll(drafts: readonly Draft[]): Promise<RailReply[]> {
  const replies: RailReply[] = [];
  for (let at = 0; at < drafts.length; at += AT_ONCE) {
    replies.push(...(await Promise.all(drafts.slice(at, at + AT_ONCE).map((draft) => rail.send(draft)))));
  }
  for (const { ok, code, message, error } of replies) {
    if (ok) continue;
    expect(code).not.toBe("internal");
    expect(message).toMatch(/^[\x20-\x7e]{1,256}$/);
    expect(error).toMatch(/^[\x20-\x7e]{1,280}$/);
  }
  return replies;
}

/** The value with one string in it replaced, once per string and once per member's name. */
function* withText(value: Json, text: (was: string) => string): Generator<Json> {
  if (typeof value === "string") yield text(value);
  else if (Array.isArray(value)) {
    for (const [at, one] of value.entries()) for (const worse of withText(one, text)) yield value.with(at, worse);
  } else if (value !== null && typeof value === "object") {
    for (const [name, one] of Object.entries(value)) {
      for (const worse of withText(one, text)) yield { ...value, [name]: worse };
      const { [name]: _, ...rest } = value;
      yield { ...rest, [text(name)]: one };
    }
  }
}

const nested = (open: string, close: string, depth: number): string => open.repeat(depth) + close.repeat(depth);

const BODIES: Readonly<Record<string, string | Uint8Array>> = {
  "two lines": "a\nb",
  "the end of a header": 'HTTP/1.1 200 OK\r\n\r\nNats-Service-Error: none\r\n\r\n{"v":1}',
  "no bytes": "",
  blanks: " \t\r\n",
  "a number beyond every double": "1e999999",
  "a long number": "9".repeat(60_000),
  "bytes that are no UTF-8": Uint8Array.from([0x7b, 0xff, 0xfe, 0x22, 0x0a, 0x7d]),
  "a byte order mark": Buffer.from("\ufeff{}"),
  "zero bytes": new Uint8Array(4_096),
  "a body of a megabyte": "x".repeat(1_000_000),
  "brackets, deep": nested("[", "]", 30_000),
  "objects, deep": `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`,
  "objects, never closed": '{"a":'.repeat(10_000),
  "many members": JSON.stringify(Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`m${at}`, 0]))),
  "a prototype": '{"__proto__":{"v":1},"constructor":{"prototype":{}},"v":1}',
  "an id of two lines": '{"v":1,"id":"a\\nb","op":{"endpoint":"x\\r\\ny","command":"z"}}',
  "an error that names its own lines": '{"v":1,"a\\nb\\r\\nc":"d\\u2028e"}',
};

describe("a body", () => {
  it.each(Object.entries(BODIES))("of %s is refused by every endpoint", async (_, bytes) => {
    const replies = await sendAll(operations.map((operation) => rail.draft(operation, { bytes })));
    for (const { code } of replies) expect(["bad-request", "unsupported-version"]).toContain(code);
  });

  it.each([
    ["a line break", (was: string) => `${was}\nb`],
    ["a line break and a header", () => "a\r\nNats-Service-Error: b\r\n\r\n"],
    ["other ends of lines", (was: string) => `${was}\u2028\u2029\u0085\u0000`],
    ["20,000 characters", () => "x".repeat(20_000)],
    ["a name of the language", () => "__proto__"],
  ])("with %s in any of its strings is answered by every endpoint", async (_, text) => {
    const drafts = operations.flatMap((operation) => {
      const draft = rail.draft(operation);
      return [...withText(envelopeOf(draft) as Json, text)].map((body) =>
        rail.draft(operation, {
          caller: draft.caller,
          subject: subjectOf(space.space, draft),
          bytes: JSON.stringify(body),
        }),
      );
    });
    const replies = await sendAll(drafts);
    expect(replies.length).toBeGreaterThan(operations.length * 10);
  });
});

describe("a header", () => {
  const plain = (name: string, value: string) => {
    const all = headers();
    all.append(name, value);
    return all;
  };

  it("of anybody's own is passed over", async () => {
    const drafts = operations.map((operation) => rail.draft(operation, { headers: plain("X-Trace", "a b\tc") }));
    for (const reply of await sendAll(drafts)) expect(reply.code).not.toBe("bad-request");
  });

  it.each([
    ["no line at all", ""],
    ["something else", "GET / HTTP/1.1\r\n\r\n"],
    ["no end", "NATS/1.0\r\nA: b"],
    ["a name of two lines", "NATS/1.0\r\na\nb: c\r\n\r\n"],
    ["a name of none", "NATS/1.0\r\n: c\r\n\r\n"],
    ["a name with blanks", "NATS/1.0\r\na b c: d\r\n\r\n"],
    ["no colon", "NATS/1.0\r\nabc\r\n\r\n"],
    ["a value of two lines", "NATS/1.0\r\na: b\nc\r\n\r\n"],
    ["control characters", "NATS/1.0\r\n\u0000\u0001: \u0002\u007f\r\n\r\n"],
    ["a status of two lines", "NATS/1.0 4\n04 No\nMessages\r\n\r\n"],
    ["bytes that are no UTF-8", "NATS/1.0\r\n\xff\xfe: \xfd\r\n\r\n"],
    ["four thousand of them", `NATS/1.0\r\n${"a: b\r\n".repeat(4_000)}\r\n`],
  ])("block of %s deafens nobody", async (_, block) => {
    const drafts = operations.map((operation) => rail.draft(operation));
    for (const draft of drafts) {
      raw.publish(subjectOf(space.space, draft), block, JSON.stringify(envelopeOf(draft)), rail.inbox());
    }
    await raw.flush();
    const replies = await sendAll(operations.map((operation) => rail.draft(operation)));
    expect(replies).toHaveLength(operations.length);
  });
});

describe("a subject", () => {
  it("of any tail deafens nobody", async () => {
    const tails = ["x", "..", "\u00e4\u00f6", "%0a", "a".repeat(3_000), Array(200).fill("x").join("."), "$SYS.x", "{}"];
    for (const operation of operations) {
      for (const tail of tails.filter((one) => !one.includes(".."))) {
        rail.post({
          ...rail.draft(operation),
          subject: `cotal.demo.ep.one.${operation.service}.${operation.name}.${tail}`,
        });
      }
    }
    await space.roots.space.flush();
  });
});

describe("a secret", () => {
  it("in a request is neither logged nor said again", async () => {
    const drafts = operations.flatMap((operation) => {
      const auth = rail.draft(operation, { envelope: { auth: SECRET_TEXT } });
      const args = rail.draft(operation, { envelope: { args: { actorToken: SECRET_TEXT, idpToken: SECRET_TEXT } } });
      const id = rail.draft(operation, { envelope: { from: { id: SECRET_TEXT, name: SECRET_TEXT } } });
      return [auth, args, id];
    });
    const replies = await sendAll(drafts);
    const gateway = await space.provisioned("gateway_loopback");
    const behind = operations.filter(({ auth }) => auth);
    for (const operation of behind) {
      replies.push(await rail.send(rail.draft(operation, { caller: gateway, envelope: { auth: SECRET_TEXT } })));
    }
    expect(JSON.stringify(replies.map(({ message, error, details }) => [message, error, details]))).not.toContain(
      SECRET_TEXT,
    );
    expect(space.hosts.flatMap(({ lines }) => lines).join("")).not.toContain(SECRET_TEXT);
  });

  it("may be as long as it likes only up to the limit", async () => {
    const [operation] = operations.filter(({ auth }) => auth);
    if (!operation) throw new Error("no operation takes a login");
    const reply = await rail.send(rail.draft(operation, { envelope: { auth: "x".repeat(WIRE.maxAuth + 1) } }));
    expect(reply).toMatchObject({ code: "bad-request" });
  });
});
