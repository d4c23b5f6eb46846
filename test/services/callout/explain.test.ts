import { expect, test } from "vitest";
import { CONNECT_STEPS } from "../../../services/callout/checks.ts";
import { ADVICE, explain } from "../../../services/callout/explain.ts";

const line = (fields: Record<string, unknown>): string =>
  JSON.stringify({ level: 40, time: 1_800_000_000_000, pid: 1, hostname: "h", ms: 3, ...fields, msg: "connect" });

const denied = (fields: Record<string, unknown>) => line({ ref: "r1", decision: "denied", ...fields });

test("a reference leads to its line: reason, caller, what to do", async () => {
  const log = [
    "not JSON, but names r1",
    JSON.stringify({ msg: "request", ref: "r1" }),
    line({ ref: "r2", decision: "admitted", reason: "r1" }),
    denied({ code: "permission-denied", step: 6, check: "root", reason: "the gate is not open", principal: "u_a.cli" }),
  ];
  expect(await explain(log, "r1")).toEqual({
    at: "2027-01-15T08:00:00.000Z",
    line: {
      ref: "r1",
      decision: "denied",
      code: "permission-denied",
      step: 6,
      check: "root",
      reason: "the gate is not open",
      principal: "u_a.cli",
      ms: 3,
    },
    advice: expect.stringContaining("exchanges its login for a new bearer"),
  });
});

test("an unknown reference is nobody's", async () => {
  expect(await explain([line({ ref: "r2", decision: "admitted" })], "r1")).toBeUndefined();
});

test("there is advice on every step", () => {
  expect(Object.keys(ADVICE)).toEqual([...CONNECT_STEPS.names]);
});

test.each([
  [{ check: "turn", code: "unavailable" }, "More clients connect at once"],
  [{ check: "proof", code: "unavailable" }, "`trust` could not be read"],
  [{ check: "proof", code: "expired" }, "compare the clocks"],
  [{ check: "rows", code: "unavailable" }, "A row could not be read"],
  [{ check: "rows", code: "internal" }, "`repair-row`"],
  [{ check: "hold", code: "unavailable" }, "A row could not be read or written"],
  [{ check: "hold", code: "conflict" }, "each draws its own"],
  [{ check: "issued", code: "failed-precondition" }, "draws a fresh one"],
  [{ check: "issued", code: "resource-exhausted" }, "keeps its nonce"],
  [{ check: "toString", code: "permission-denied" }, "The reason says"],
  [{}, "The reason says"],
])("%j", async (fields, advice) => {
  expect((await explain([denied(fields)], "r1"))?.advice).toContain(advice);
});

test("an admission and a silence are told apart from denials", async () => {
  const advice = async (decision: string) => (await explain([line({ ref: "r1", decision })], "r1"))?.advice;
  expect(await advice("admitted")).toContain("was admitted");
  expect(await advice("silent")).toContain("Nothing was answered");
});
