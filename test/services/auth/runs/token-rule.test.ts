import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { answerable, holdToken } from "../../../../services/auth/runs/token-rule.ts";
import { type Step, stepKeyOf } from "../../../../shared/rows/mesh/journal.ts";
import { EnvelopeId, RunId } from "../../../../shared/tokens.ts";
import { type StepEntry, stepEntry } from "./runs.ts";

const RUN = RunId.parse(`run-${"0".repeat(32)}`);
const steps = (entries: readonly StepEntry[]): Step[] =>
  entries.map((entry, n) => ({ v: 1, kind: "step", run: RUN, n: n + 2, at: 0, entry }));
const KEY = "main/checkpoint:deploy#1";
const of = (...entries: StepEntry[]) => answerable(steps(entries), stepKeyOf(entries.at(-1) ?? stepEntry()));

describe("the token of a step", () => {
  it("is none where no record has the key", () => {
    expect(answerable([], KEY)).toBeUndefined();
    expect(answerable(steps([stepEntry({ occurrence: 2 }), stepEntry({ name: "Deploy" })]), KEY)).toBeUndefined();
    expect(answerable(steps([stepEntry()]), KEY)).toEqual({ token: "req-1", pending: true });
  });

  it("leaves out the name of a step that has none", () => {
    const { name: _, ...nameless } = stepEntry();
    expect(answerable(steps([nameless]), "main/checkpoint#1")).toEqual({ token: "req-1", pending: true });
    expect(answerable(steps([nameless]), KEY)).toBeUndefined();
  });

  it("is none of a step that nobody answers", () => {
    for (const kind of ["effect", "sleep", "Checkpoint", "asks", ""]) expect(of(stepEntry({ kind }))).toBeUndefined();
  });

  it("is the last record's request", () => {
    expect(of(stepEntry(), stepEntry({ requestId: "req-2" }))).toEqual({ token: "req-2", pending: true });
    expect(of(stepEntry({ state: "done" }))).toEqual({ token: "req-1", pending: false });
    expect(of(stepEntry({ state: "Pending" }))?.pending).toBe(false);
  });

  it("is an ask's own, the last that was named", () => {
    const ask = (change: Partial<StepEntry> = {}) => stepEntry({ kind: "ask", ...change });
    expect(of(ask())?.token).toBe("req-1");
    expect(of(ask({ external: {} }))?.token).toBe("req-1");
    expect(of(ask({ external: { askToken: "a" } }), ask({ external: { askToken: "b" } }), ask())?.token).toBe("b");
    // A checkpoint has no ask token, whatever its record says.
    expect(of(stepEntry({ external: { askToken: "a" } }))?.token).toBe("req-1");
  });

  it("is derived from the request where any record was held, of whatever kind the step is", () => {
    const expected = createHash("sha256").update(Buffer.from("cotal.hold.v1\0req-9")).digest("base64url");
    for (const hold of [{ until: 1 }, null, false, ""]) {
      const held = [stepEntry({ kind: "effect", hold }), stepEntry({ kind: "effect", requestId: "req-9" })];
      expect(of(...held)?.token).toBe(expected);
    }
    expect(of(stepEntry({ kind: "ask", hold: 1, requestId: "req-9", external: { askToken: "a" } }))?.token).toBe(
      expected,
    );
  });

  it("is none where it could not name a checkpoint", () => {
    for (const text of ["", "a.b", "a b", "*", ">", "a".repeat(65)]) {
      expect(of(stepEntry({ requestId: text }))).toBeUndefined();
      expect(of(stepEntry({ kind: "ask", external: { askToken: text } }))).toBeUndefined();
    }
  });
});

/** Few different values, so that records often meet on one key. */
const anyEntry: fc.Arbitrary<StepEntry> = fc
  .record({
    scope: fc.constantFrom("main", "main/sub"),
    kind: fc.constantFrom("checkpoint", "ask", "effect"),
    name: fc.constantFrom(undefined, "deploy"),
    occurrence: fc.constantFrom(1, 2),
    requestId: fc.constantFrom("r1", "r2", "r3"),
    state: fc.constantFrom("pending", "done", "cancelled"),
    hold: fc.constantFrom(undefined, null, {}),
    askToken: fc.constantFrom(undefined, "a1", "a2"),
  })
  .map(({ name, hold, askToken, ...entry }) => ({
    ...entry,
    ...(name === undefined ? {} : { name }),
    ...(hold === undefined ? {} : { hold }),
    ...(askToken === undefined ? {} : { external: { askToken } }),
  }));
const anyJournal = fc.array(anyEntry, { maxLength: 12 });

/** The table of the chapter, read row by row over one step's records. */
function byTheTable(records: readonly StepEntry[]): string | undefined {
  const last = records[records.length - 1];
  if (last === undefined) return undefined;
  let [held, asked]: [boolean, string | undefined] = [false, undefined];
  for (const record of records) {
    if ("hold" in record) held = true;
    if (record.external?.askToken !== undefined) asked = record.external.askToken;
  }
  if (held) return holdToken(last.requestId);
  if (last.kind === "ask") return asked ?? last.requestId;
  return last.kind === "checkpoint" ? last.requestId : undefined;
}

describe("over any journal", () => {
  it("the token is what the table says", () => {
    fc.assert(
      fc.property(anyJournal, anyEntry, (entries, wanted) => {
        const key = stepKeyOf(wanted);
        const records = entries.filter((entry) => stepKeyOf(entry) === key);
        const found = answerable(steps(entries), key);
        expect(found?.token).toBe(byTheTable(records));
        if (found) expect(found.pending).toBe(records.at(-1)?.state === "pending");
      }),
    );
  });

  it("records of other steps change nothing, wherever they stand", () => {
    fc.assert(
      fc.property(anyJournal, anyEntry, (entries, wanted) => {
        const key = stepKeyOf(wanted);
        const own = entries.filter((entry) => stepKeyOf(entry) === key);
        expect(answerable(steps(entries), key)).toEqual(answerable(steps(own), key));
      }),
    );
  });

  it("a token names a checkpoint and stands in the journal, or comes from what does", () => {
    fc.assert(
      fc.property(anyJournal, (entries) => {
        const said = new Set(
          entries.flatMap(({ requestId, external }) => [requestId, holdToken(requestId), external?.askToken]),
        );
        for (const entry of entries) {
          const found = answerable(steps(entries), stepKeyOf(entry));
          if (!found) continue;
          expect(EnvelopeId.is(found.token)).toBe(true);
          expect(said).toContain(found.token);
        }
      }),
    );
  });

  it("a step that was settled is not pending again until a record says so", () => {
    fc.assert(
      fc.property(anyJournal, anyEntry, (entries, last) => {
        const settled = answerable(steps([...entries, { ...last, state: "done" }]), stepKeyOf(last));
        expect(settled?.pending ?? false).toBe(false);
        const again = answerable(
          steps([...entries, { ...last, state: "done" }, { ...last, state: "pending" }]),
          stepKeyOf(last),
        );
        expect(again?.pending ?? true).toBe(true);
      }),
    );
  });

  it("one hold holds for good", () => {
    fc.assert(
      fc.property(anyJournal, anyEntry, (entries, last) => {
        const held = steps([{ ...last, hold: 0 }, ...entries, last]);
        expect(answerable(held, stepKeyOf(last))?.token).toBe(holdToken(last.requestId));
      }),
    );
  });
});
