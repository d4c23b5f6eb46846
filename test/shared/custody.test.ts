import { describe, expect, it } from "vitest";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import {
  askConnectionLiveness,
  askEvict,
  askPrincipalLiveness,
  believeConnections,
  believeEvictions,
  believePrincipal,
  type CustodyClient,
} from "../../shared/custody.ts";
import { AuthorityError } from "../../shared/errors.ts";
import { CUSTODIAN } from "../../shared/limits.ts";
import { systemPorts } from "../../shared/ports.ts";
import type { Principal, ServerNkey, UserNkey } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import { testPorts } from "../kit/clock.ts";

const [a, b] = ["local.a", "local.b"] as [Principal, Principal];
const gone = (principal: string) => ({ principal, kicked: 1, remaining: 0, verifiedGone: true, scanComplete: true });
const tuple = (cid: number) => ({ serverId: server, cid, userNkey: user });
const server = createKeyPair("server").public as ServerNkey;
const user = createKeyPair("user").public as UserNkey;

describe("an eviction is believed", () => {
  it("as it was answered, in order", () => {
    const evictions = [gone(a), { ...gone(b), verifiedGone: false, scanComplete: false, note: "n1 is silent" }];
    expect(believeEvictions([a, b], { data: { evictions } })).toEqual(evictions);
  });

  it.each<[string, object]>([
    ["a partial scan", { scanComplete: false }],
    ["survivors", { remaining: 1 }],
    ["both", { remaining: 2, scanComplete: false }],
  ])("but not as gone with %s", (_what, contradiction) => {
    const [eviction, other] = believeEvictions([a, b], {
      data: { evictions: [{ ...gone(a), ...contradiction }, gone(b)] },
    });
    expect(eviction).toEqual({ ...gone(a), ...contradiction, verifiedGone: false });
    expect(other?.verifiedGone).toBe(true);
  });

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["no evictions", {}],
    ["one too few", { evictions: [gone(a)] }],
    ["one too many", { evictions: [gone(a), gone(b), gone("local.c")] }],
    ["another order", { evictions: [gone(b), gone(a)] }],
    ["one twice", { evictions: [gone(a), gone(a)] }],
    ["another principal", { evictions: [gone(a), gone("local.c")] }],
    ["a member more", { evictions: [gone(a), { ...gone(b), sure: true }] }],
    ["a member less", { evictions: [gone(a), { principal: b, verifiedGone: true }] }],
    ["a negative count", { evictions: [gone(a), { ...gone(b), remaining: -1 }] }],
    ["truth as text", { evictions: [gone(a), { ...gone(b), verifiedGone: "true" }] }],
  ])("of nobody in an answer with %s", (_what, data) => {
    const evictions = believeEvictions([a, b], { data });
    expect(evictions.map(({ principal }) => principal)).toEqual([a, b]);
    for (const { verifiedGone, scanComplete, note } of evictions) {
      expect({ verifiedGone, scanComplete }).toEqual({ verifiedGone: false, scanComplete: false });
      expect(note).toMatch(/^the custodian's answer is (unreadable|to another question)$/);
    }
  });
});

describe("a principal's state is believed", () => {
  const answer = { principal: a, state: "gone", sweepComplete: true };

  it.each<[object, string]>([
    [answer, "gone"],
    [{ ...answer, state: "live" }, "live"],
    [{ ...answer, state: "live", sweepComplete: false }, "live"],
    [{ ...answer, state: "unknown", sweepComplete: false, note: "x" }, "unknown"],
    [{ ...answer, sweepComplete: false }, "unknown"],
  ])("%j: %s", (data, state) => {
    expect(believePrincipal(a, { data })).toEqual({ ...data, state });
  });

  it.each<[string, unknown]>([
    ["another principal", { ...answer, principal: b }],
    ["another state", { ...answer, state: "dead" }],
    ["no proof", { principal: a, state: "gone" }],
    ["a list", [answer]],
    ["nothing", undefined],
  ])("as unknown in an answer with %s", (_what, data) => {
    expect(believePrincipal(a, { data })).toMatchObject({ principal: a, state: "unknown", sweepComplete: false });
  });
});

describe("the state of two connections is believed", () => {
  const asked = { ledger: tuple(1), records: tuple(2) };
  const answer = (ledger: string, records: string, sweepComplete: boolean) => ({
    ledger: { tuple: tuple(1), state: ledger },
    records: { tuple: tuple(2), state: records },
    sweepComplete,
  });
  const states = (data: unknown) => {
    const { ledger, records } = believeConnections(asked, { data });
    return [ledger.state, records.state];
  };

  it("as it was answered, gone only where both verdicts are proven", () => {
    expect(states(answer("gone", "gone", true))).toEqual(["gone", "gone"]);
    expect(states(answer("live", "gone", true))).toEqual(["live", "gone"]);
    expect(states(answer("gone", "unknown", false))).toEqual(["unknown", "unknown"]);
    expect(states(answer("live", "gone", false))).toEqual(["live", "unknown"]);
  });

  it.each<[string, unknown]>([
    ["swapped tuples", { ...answer("gone", "gone", true), ledger: { tuple: tuple(2), state: "gone" } }],
    ["another cid", { ...answer("gone", "gone", true), records: { tuple: tuple(3), state: "gone" } }],
    [
      "another server",
      {
        ...answer("gone", "gone", true),
        ledger: { tuple: { ...tuple(1), serverId: createKeyPair("server").public }, state: "gone" },
      },
    ],
    [
      "another nkey",
      {
        ...answer("gone", "gone", true),
        ledger: { tuple: { ...tuple(1), userNkey: createKeyPair("user").public }, state: "gone" },
      },
    ],
    ["one half", { ledger: { tuple: tuple(1), state: "gone" }, sweepComplete: true }],
    ["nothing", undefined],
  ])("as unknown in an answer with %s", (_what, data) => {
    expect(states(data)).toEqual(["unknown", "unknown"]);
  });
});

/** Answers every call with what `of` gives for its arguments. */
function clientOf(of: (args: unknown, options: { deadlineMs?: number }) => unknown) {
  const calls: { operation: string; args: unknown; deadlineMs: number | undefined }[] = [];
  const call = async (operation: { name: string }, args: unknown, options: { deadlineMs?: number } = {}) => {
    calls.push({ operation: operation.name, args, deadlineMs: options.deadlineMs });
    return of(args, options);
  };
  return { client: { call } as unknown as CustodyClient, calls };
}

describe("asking the custodian", () => {
  const ports = systemPorts;

  it("gives a read 30 s and an eviction 45 s, but never more than is left", async () => {
    const clock = testPorts();
    const { client, calls } = clientOf(() => undefined);
    const ask = async (ms: number) => {
      const work = ownWork(clock, ms);
      await askEvict(client, [a], work, clock);
      await askPrincipalLiveness(client, a, work, clock);
      await askConnectionLiveness(client, { ledger: tuple(1), records: tuple(2) }, work, clock);
    };
    await ask(60_000);
    await ask(20_000);
    expect(calls.map(({ operation, deadlineMs }) => [operation, deadlineMs])).toEqual([
      ["evict-principals", CUSTODIAN.askEvictMs],
      ["principal-liveness", CUSTODIAN.askReadMs],
      ["connection-liveness", CUSTODIAN.askReadMs],
      ["evict-principals", 20_000],
      ["principal-liveness", 20_000],
      ["connection-liveness", 20_000],
    ]);
  });

  it("asks nothing without time, or without anybody to evict", async () => {
    const { client, calls } = clientOf(() => undefined);
    const given = new AbortController();
    given.abort();
    expect(await askPrincipalLiveness(client, a, ownWork(ports, 0), ports)).toMatchObject({ state: "unknown" });
    expect(await askEvict(client, [a], ownWork(ports, 1_000, given.signal), ports)).toMatchObject([
      { verifiedGone: false },
    ]);
    expect(await askEvict(client, [], ownWork(ports, 1_000), ports)).toEqual([]);
    expect(calls).toEqual([]);
  });

  it("asks for each principal once, 256 at a time, and answers in order", async () => {
    const many = Array.from({ length: 300 }, (_, index) => `local.p${index}` as Principal);
    const { client, calls } = clientOf((args) => ({
      evictions: (args as { principals: string[] }).principals.map(gone),
    }));
    const evictions = await askEvict(client, [...many, ...many], ownWork(ports, 1_000), ports);
    expect(calls.map(({ args }) => (args as { principals: string[] }).principals.length)).toEqual([256, 44]);
    expect(evictions.map(({ principal }) => principal)).toEqual(many);
    expect(evictions.every(({ verifiedGone }) => verifiedGone)).toBe(true);
  });

  it.each<[string, unknown, string]>([
    ["a refusal", new AuthorityError("permission-denied", "no", { outcome: "not-executed" }), "not-executed"],
    ["silence", new AuthorityError("unavailable", "no answer in time", { outcome: "unknown" }), "unknown"],
    ["an outcome unsaid", new AuthorityError("deadline-exceeded", "late"), "unknown"],
    ["a fault of ours", new TypeError("boom"), "unknown"],
  ])("turns %s into an unproven answer", async (_what, error, outcome) => {
    const { client } = clientOf(() => {
      throw error;
    });
    const work = ownWork(ports, 1_000);
    expect(await askEvict(client, [a], work, ports)).toMatchObject([{ principal: a, verifiedGone: false, kicked: 0 }]);
    expect(work.effects.outcome).toBe(outcome);
    expect((await askPrincipalLiveness(client, a, work, ports)).state).toBe("unknown");
    const asked = { ledger: tuple(1), records: tuple(2) };
    const { ledger, records } = await askConnectionLiveness(client, asked, work, ports);
    expect([ledger, records]).toEqual([
      { tuple: tuple(1), state: "unknown" },
      { tuple: tuple(2), state: "unknown" },
    ]);
  });

  it("counts kicks among the effects of whoever asks", async () => {
    const { client } = clientOf(() => ({ evictions: [gone(a)] }));
    const work = ownWork(ports, 1_000);
    await askEvict(client, [a], work, ports);
    work.effects.complete();
    expect(work.effects.outcome).toBe("executed");
  });

  it("stops waiting once it is given up", async () => {
    const given = new AbortController();
    const { client } = clientOf(() => new Promise(() => {}));
    const asking = askPrincipalLiveness(client, a, ownWork(ports, 20_000, given.signal), ports);
    given.abort();
    expect(await asking).toMatchObject({ state: "unknown", note: "the question was given up" });
  });
});
