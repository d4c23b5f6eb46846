/** What becomes of a request behind the road: reply, outcome, deadline, places, drain (wire §3 to §5, §9). */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Request } from "../../../services/host/handler.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { PLACES, STOP } from "../../../shared/limits.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { gateRows } from "../../../shared/rows/gate.ts";
import { create } from "../../../shared/store/message.ts";
import { Actor, Owner, type Triple } from "../../../shared/tokens.ts";
import { type Broker, startBroker } from "../../kit/broker.ts";
import { statistics } from "../../kit/micro.ts";
import { type Draft, type RailReply, stranger } from "../../kit/rail.ts";
import { freshUid, openGate } from "../../kit/rows.ts";
import { openStore, type TestStore } from "../../kit/store.ts";
import { type Bench, read, startBench, write } from "./bench.ts";

let bench: Bench;
/** What the handlers write to: another broker, which may stop while replies still go out. */
let ledger: Broker;
let rows: TestStore;
beforeAll(async () => {
  [bench, ledger] = await Promise.all([startBench(), startBroker()]);
  rows = await openStore(ledger.url);
});
afterAll(async () => {
  await bench.stop();
  await rows.close();
  await ledger.stop();
});
afterEach(() => {
  bench.work = async ({ args }) => args;
  bench.state = "ready";
});

const draft = (more: Partial<Draft> = {}) => bench.rail.draft(write, more);
const send = (more: Partial<Draft> = {}): Promise<RailReply> => bench.rail.send(draft(more));
const counters = async () => {
  const found = (await statistics(bench.connection, "auth")).get("write");
  if (!found) throw new Error("no counters");
  return found;
};
const deadline = (ms: number) => ({ envelope: { deadlineMs: ms } });

/** Commits one row in the request's own work. */
async function commit({ work }: Request): Promise<string> {
  const uid = freshUid();
  await rows.store.commit([create(gateRows.key({ uid }), openGate(uid))], work);
  return uid;
}

/** A handler that goes on when it is told to. */
function held(): { readonly work: Bench["work"]; readonly begun: () => number; release(): void } {
  let begun = 0;
  let release: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  return {
    work: async ({ args }) => {
      begun += 1;
      await gate;
      return args;
    },
    begun: () => begun,
    release: () => release(),
  };
}

describe("a reply", () => {
  it("goes to the inbox, under the request's id, without error headers", async () => {
    const reply = await send({ envelope: { id: "my-id" } });
    expect(reply).toEqual({
      subject: expect.stringMatching(/^_INBOX/),
      id: "my-id",
      ok: true,
      data: { text: "hello" },
    });
  });

  it("goes to the rail derived from the request where that names no inbox", async () => {
    const caller = stranger();
    const { instanceId, epoch } = bench.incarnation;
    const start = `cotal.demo.ep.reply.auth.${instanceId}.${epoch}.${caller.owner}.cli.${caller.uid}.`;
    const well = await send({ caller, reply: null });
    expect(well).toMatchObject({ ok: true });
    expect(well.subject.startsWith(start)).toBe(true);
    const refused = await send({ caller, reply: null, envelope: { class: "journal" } });
    expect(refused).toMatchObject({ ok: false, code: "class-mismatch" });
    expect(refused.subject.startsWith(start)).toBe(true);
  });

  it("has the id - where the request has none that could be used", async () => {
    for (const bytes of ["a\nb", '{"v":1,"id":"a.b"}', '{"v":1,"id":"a\\nb"}', '{"v":2,"id":7}']) {
      expect(await send({ bytes })).toMatchObject({ id: "-", ok: false });
    }
    expect(await send({ bytes: '{"v":1,"id":"usable"}' })).toMatchObject({ id: "usable", code: "bad-request" });
  });

  it("is never given to a cast, whatever becomes of it", async () => {
    const cast = { envelope: { replyExpected: false, deadlineMs: undefined } };
    const before = await counters();
    const inboxes = [
      cast,
      { envelope: { ...cast.envelope, class: "journal" } },
      { bytes: '{"replyExpected":false}' },
    ].map((more) => {
      const whole = draft({ ...more, reply: bench.rail.inbox() });
      bench.rail.post(whole);
      return whole.reply;
    });
    await expect.poll(async () => (await counters()).num_requests).toBe(before.num_requests + 3);
    expect((await counters()).num_errors).toBe(before.num_errors + 2);
    expect(bench.rail.replies.filter(({ subject }) => inboxes.includes(subject))).toEqual([]);
  });

  it("is not given where nothing says that an unreadable body is a call", async () => {
    const [before, heard] = [await counters(), bench.rail.replies.length];
    bench.rail.post(draft({ reply: null, bytes: "no JSON" }));
    bench.rail.post(draft({ reply: null, envelope: { by: "nobody" } }));
    await expect.poll(async () => (await counters()).num_errors).toBe(before.num_errors + 2);
    expect(bench.rail.replies.length).toBe(heard);
  });

  it("is internal, in one line with the request's id, where a handler fails", async () => {
    const failures: unknown[] = [new TypeError("a\nb\r\nc: secret"), "text\nmore", undefined, { code: "conflict" }];
    for (const failure of failures) {
      bench.work = () => Promise.reject(failure);
      const reply = await send({ envelope: { id: "request-1" } });
      const message = "internal error, request request-1";
      expect(reply).toMatchObject({ ok: false, code: "internal", number: "500", message, outcome: "not-executed" });
      expect(reply.error).toBe(`internal: ${message}`);
    }
    bench.work = () => {
      throw new Error("thrown\nat once");
    };
    expect(await send()).toMatchObject({ code: "internal" });
  });

  it("has every reason in the log alone", async () => {
    bench.work = () =>
      Promise.reject(new AuthorityError("conflict", "in public\u2028\nlast", { reason: "key of a row" }));
    const reply = await send({ envelope: { id: "request-2" } });
    expect(reply).toMatchObject({ code: "conflict", number: "409", message: "in public??last" });
    expect(JSON.stringify(reply)).not.toContain("key of a row");
    await expect.poll(() => bench.lines.find(({ id }) => id === "request-2")).toMatchObject({ reason: "key of a row" });
  });

  it("is internal where the answer does not fit its schema, and never holds a part of it", async () => {
    bench.work = async () => ({ text: "x", seed: "SECRET" });
    const reply = await send();
    expect(reply).toMatchObject({ ok: false, code: "internal" });
    expect(JSON.stringify(reply)).not.toContain("SECRET");
  });

  it("is resource-exhausted where the broker would not take it", async () => {
    bench.work = async () => ({ text: "x".repeat(1_100_000) });
    expect(await send()).toMatchObject({ code: "resource-exhausted", number: "429" });
  });

  it("never holds more than 8 details or 2,048 bytes of them", async () => {
    const detail = { kind: "ai.cotal.auth.op-held" as const, opId: "o".repeat(26), opKind: "registration" };
    bench.work = () => Promise.reject(new AuthorityError("conflict", "held", { details: Array(20).fill(detail) }));
    expect((await send()).details?.length).toBe(8);
    const long = { ...detail, opKind: "x".repeat(1_000) };
    bench.work = () => Promise.reject(new AuthorityError("conflict", "held", { details: Array(8).fill(long) }));
    expect((await send()).details?.length).toBe(1);
  });
});

describe("the outcome", () => {
  it("is not-executed before anything was sent, and where the broker refused", async () => {
    bench.work = () => Promise.reject(new AuthorityError("permission-denied", "no"));
    expect(await send()).toMatchObject({ code: "permission-denied", outcome: "not-executed" });
    bench.work = async (request) => {
      const uid = freshUid();
      const key = gateRows.key({ uid });
      await rows.store.commit([create(key, openGate(uid))], rows.work());
      await rows.store.commit([create(key, openGate(uid))], request.work);
    };
    expect(await send()).toMatchObject({ code: "conflict", outcome: "not-executed" });
  });

  it("is unknown after some of several commits, executed after all of them", async () => {
    bench.work = async (request) => {
      await commit(request);
      throw new AuthorityError("unavailable", "the second could not be made");
    };
    expect(await send()).toMatchObject({ code: "unavailable", outcome: "unknown" });
    bench.work = async (request) => ({ uid: await commit(request) });
    expect(await send()).toMatchObject({ code: "internal", outcome: "executed" });
  });

  it("of what only reads is always not-executed", async () => {
    bench.work = async (request) => {
      await commit(request);
      throw new AuthorityError("unavailable", "and yet");
    };
    const reply = await bench.rail.send(bench.rail.draft(read));
    expect(reply).toMatchObject({ code: "unavailable", outcome: "not-executed" });
  });
});

describe("a deadline", () => {
  it("that passes before anything was sent is not-executed, and nothing is written later", async () => {
    const { work, release } = held();
    let late: Promise<unknown> = Promise.resolve();
    bench.work = (request) => {
      late = work(request).then(() => commit(request));
      return late;
    };
    const before = await rows.store.lastSeq("auth");
    expect(await send(deadline(50))).toMatchObject({
      code: "deadline-exceeded",
      number: "504",
      outcome: "not-executed",
    });
    release();
    await expect(late).rejects.toMatchObject({ code: "unavailable" });
    expect(await rows.store.lastSeq("auth")).toBe(before);
  });

  it("that passes while a commit is in flight is unknown, and the commit's end is logged", async () => {
    bench.work = async (request) => ({ text: await commit(request) });
    await ledger.kill("SIGSTOP");
    const reply = await send({ envelope: { deadlineMs: 300, id: "in-flight" } });
    await ledger.kill("SIGCONT");
    expect(reply).toMatchObject({ code: "deadline-exceeded", outcome: "unknown" });
    const ended = () => bench.lines.find(({ id, msg }) => id === "in-flight" && msg === "work ended after its reply");
    await expect.poll(ended).toMatchObject({ outcome: "unknown" });
  });

  it("of a call is answered once, the place kept until the work ends", async () => {
    const { work, release } = held();
    bench.work = work;
    const caller = stranger();
    const reply = await send({ caller, ...deadline(30) });
    expect(reply).toMatchObject({ code: "deadline-exceeded" });
    await Promise.all(Array.from({ length: PLACES.owner - 1 }, () => send({ caller, ...deadline(30) })));
    expect(await send({ caller })).toMatchObject({ code: "resource-exhausted" });
    release();
    await expect.poll(async () => (await send({ caller })).ok).toBe(true);
    expect(bench.rail.replies.filter(({ id }) => id === reply.id)).toHaveLength(1);
  });
});

describe("places", () => {
  const local = (actor: string): Triple => ({
    ...stranger(actor),
    owner: Owner.parse("local"),
    actor: Actor.parse(actor),
  });
  const retry = { code: "resource-exhausted", number: "429", outcome: "not-executed" };
  const detail = { kind: "ai.cotal.ep.retry-after", seconds: PLACES.retryAfterSeconds };

  /** Fills so many places and holds them while `then` runs. */
  async function filled(
    callers: readonly Triple[],
    then: () => Promise<void>,
    more: Partial<Draft> = {},
  ): Promise<void> {
    const { work, begun, release } = held();
    const before = bench.work;
    bench.work = (request) => (request.args.text === "hold" ? work(request) : before(request));
    const pending = callers.map((caller) =>
      send({ caller, ...more, envelope: { ...more.envelope, args: { text: "hold" } } }),
    );
    await expect.poll(begun, { interval: 2 }).toBe(callers.length);
    try {
      await then();
    } finally {
      release();
      await Promise.all(pending);
    }
  }
  const times = <T>(count: number, one: () => T): T[] => Array.from({ length: count }, one);

  it("of one owner are 16, whoever else may still ask", async () => {
    const caller = stranger();
    await filled(
      times(PLACES.owner, () => caller),
      async () => {
        expect(await send({ caller })).toMatchObject({ ...retry, details: [detail] });
        expect(await send({ caller: { ...caller, actor: Actor.parse("other") } })).toMatchObject(retry);
        expect(await send()).toMatchObject({ ok: true });
      },
    );
    expect(await send({ caller })).toMatchObject({ ok: true });
  });

  it("of one gateway are 64, of one person behind it 8 once known", async () => {
    const gateway = local("gateway_public");
    await filled(
      times(PLACES.gateway, () => gateway),
      async () => {
        expect(await send({ caller: gateway })).toMatchObject(retry);
        expect(await send({ caller: local("gateway_loopback") })).toMatchObject({ ok: true });
      },
    );
    bench.work = async (request) => {
      request.occupy("somebody");
      return request.args;
    };
    const { work, begun, release } = held();
    bench.work = async (request) => {
      request.occupy(request.idpToken ?? "");
      return work(request);
    };
    const ask = (auth: string) => send({ caller: gateway, envelope: { auth } });
    const pending = times(PLACES.person, () => ask("alice"));
    await expect.poll(begun, { interval: 2 }).toBe(PLACES.person);
    expect(await ask("alice")).toMatchObject(retry);
    const other = ask("bob");
    release();
    for (const reply of await Promise.all([...pending, other])) expect(reply.ok).toBe(true);
  });

  it("are 256 in all, the last 32 for local callers other than gateways", async () => {
    const everybody = times(PLACES.service - PLACES.reserved, () => stranger());
    await filled(everybody, async () => {
      expect(await send()).toMatchObject(retry);
      expect(await send({ caller: local("gateway_public") })).toMatchObject(retry);
      await filled(
        times(PLACES.reserved, () => local("operator")),
        async () => {
          expect(await send({ caller: local("operator") })).toMatchObject(retry);
        },
      );
      expect(await send({ caller: local("operator") })).toMatchObject({ ok: true });
    });
    expect(bench.served.inFlight()).toBe(0);
  });
});

describe("a replica that cannot serve", () => {
  it("answers unavailable, after all other checks", async () => {
    bench.state = "unavailable";
    expect(await send()).toMatchObject({ code: "unavailable", number: "503", outcome: "not-executed" });
    expect(await send({ envelope: { args: {} } })).toMatchObject({ code: "bad-request" });
  });
});

describe("a drain", () => {
  it("lets what is in flight finish, and answers unavailable what takes too long", async () => {
    const ports = {
      ...systemPorts,
      sleep: (ms: number, signal?: AbortSignal) => systemPorts.sleep(ms === STOP.drainMs ? 200 : ms, signal),
    };
    const other = await startBench(ports);
    try {
      const [quick, slow] = [held(), held()];
      other.work = (request) => (request.args.text === "quick" ? quick.work(request) : slow.work(request));
      const ask = (text: string) => other.rail.send(other.rail.draft(write, { envelope: { args: { text } } }));
      const [first, second] = [ask("quick"), ask("slow")];
      await expect.poll(() => quick.begun() + slow.begun(), { interval: 2 }).toBe(2);
      const drained = other.served.drain();
      quick.release();
      expect(await first).toMatchObject({ ok: true });
      expect(await second).toMatchObject({ code: "unavailable", outcome: "not-executed" });
      slow.release();
      await drained;
      expect(await other.served.stopped).toBeUndefined();
    } finally {
      await other.stop();
    }
  });
});
