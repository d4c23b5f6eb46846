import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  buildSubject,
  MODE_TARGETS,
  type Mode,
  parseSubject,
  type RequestSubject,
  replyRail,
} from "../../shared/subjects.ts";

interface Case {
  subject: string;
  parses: Record<string, unknown> | null;
  why?: string;
}
const { cases } = JSON.parse(readFileSync(new URL("../vectors/subjects.json", import.meta.url), "utf8")) as {
  cases: Case[];
};

test.each(cases.filter((c) => c.parses))("$subject parses to its known form and builds back", ({ subject, parses }) => {
  const parsed = parseSubject(subject);
  expect(parsed).toMatchObject(parses ?? {});
  expect(parsed && buildSubject(parsed)).toBe(subject);
});

test.each(cases.filter((c) => !c.parses))("no form: $why", ({ subject }) => {
  expect(parseSubject(subject)).toBeUndefined();
});

const chars = (alphabet: string, min: number, max: number) =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength: min, maxLength: max });
const lower = "abcdefghijklmnopqrstuvwxyz0123456789";
const owner = chars("abcdefghijklmnopqrstuvwxyz234567", 26, 26).map((tail) => `u_${tail}`);
const uid = chars(lower, 26, 32);
const actor = chars(`${lower}_ABC`, 1, 64);
const form = fc.record({
  space: chars(`${lower}-_`, 1, 20),
  rail: fc.constantFrom("one", "all", "inst"),
  v1: fc.boolean(),
  command: chars(`${lower}-`, 1, 32).filter((word) => !Object.hasOwn(MODE_TARGETS, word)),
  mode: fc.constantFrom<Mode | null>(null, ...(Object.keys(MODE_TARGETS) as Mode[])),
  caller: fc.record({ owner, actor, uid }),
  target: fc.record({ owner, actor, uid }),
  instanceId: uid,
  generation: chars("0123456789abcdef", 32, 32),
  nonce: chars(`${lower}-_`, 22, 64),
});

test("building and parsing are inverse for every form", () => {
  fc.assert(
    fc.property(form, ({ v1, mode, target, rail, instanceId, generation, ...rest }) => {
      const count = mode ? MODE_TARGETS[mode] : 0;
      const parts = {
        ...rest,
        endpoint: "manager",
        rail,
        version: v1 ? "v1" : "legacy",
        mode,
        ...(rail === "inst" ? { instanceId } : {}),
        ...(v1 ? { generation } : {}),
        ...(count === 0 ? {} : { target: count === 1 ? { owner: target.owner } : target }),
      } as unknown as RequestSubject;
      expect(parseSubject(buildSubject(parts))).toEqual(parts);
    }),
  );
});

test("garbage never parses and never throws", () => {
  const dotted = fc
    .array(fc.oneof(fc.string(), fc.constantFrom("cotal", "ep", "v1", "one", "inst", "self", "auth", "*", ">")))
    .map((t) => t.join("."));
  fc.assert(fc.property(dotted, (subject) => parseSubject(subject) === undefined));
});

test("a builder refuses parts that make no form", () => {
  const parts = parseSubject(cases[0]?.subject ?? "");
  expect(() => buildSubject({ ...(parts as RequestSubject), command: "*" as never })).toThrow(RangeError);
  expect(() => buildSubject({ ...(parts as RequestSubject), generation: "0".repeat(32) as never })).toThrow(RangeError);
});

test("the reply rail has eleven tokens", () => {
  const parts = parseSubject(cases[0]?.subject ?? "") as RequestSubject;
  expect(replyRail(parts, { instanceId: "9".repeat(26), epoch: 3 }).split(".")).toHaveLength(11);
});
