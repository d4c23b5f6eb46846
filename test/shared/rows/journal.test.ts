import { describe, expect, it } from "vitest";
import type { Entry } from "../../../shared/rows/family.ts";
import { type Activation, journalRows, readJournal, type Step, stepKeyOf } from "../../../shared/rows/mesh/journal.ts";
import { splitHolder } from "../../../shared/rows/mesh/run.ts";
import { RunId } from "../../../shared/tokens.ts";

const runId = RunId.parse(`run-${"0".repeat(32)}`);
const key = journalRows.key({ runId });

const activation = (n: number, fencingToken = 1, replayedTo = 0): Activation => ({
  v: 1,
  kind: "activation",
  run: runId,
  n,
  holder: "h.t",
  fencingToken,
  epoch: fencingToken,
  replayedTo,
  at: 1,
});
const step = (n: number): Step => ({
  v: 1,
  kind: "step",
  run: runId,
  n,
  at: 1,
  entry: { scope: "main", kind: "ask", occurrence: 0, requestId: `r${n}`, state: "pending" },
});

/** Reads these records, stored at every tenth sequence. */
const read = (...records: (Activation | Step)[]) =>
  readJournal(runId, async (_key, from): Promise<Entry<Activation | Step> | undefined> => {
    const index = Math.ceil(from / 10);
    const value = records[Math.max(0, index - 1)];
    return value && index <= records.length ? { key, value, revision: Math.max(1, index) * 10 } : undefined;
  });

describe("a journal", () => {
  it("is nothing before its first record", async () => {
    expect(await read()).toBeUndefined();
  });

  it("gives its steps in order and where it ends", async () => {
    const journal = await read(activation(1), step(2), step(3), activation(4, 2, 3), step(5));
    expect(journal?.steps.map(({ n }) => n)).toEqual([2, 3, 5]);
    expect(journal?.last).toBe(5);
  });

  it.each([
    ["begins with a step", [step(1)]],
    ["begins in the middle", [activation(1, 1, 4)]],
    ["has a gap", [activation(1), step(3)]],
    ["repeats a number", [activation(1), step(2), step(2)]],
    ["lets its fencing token fall", [activation(1, 2), activation(2, 1, 1)]],
  ])("is none if it %s", async (_what, records) => {
    await expect(read(...records)).rejects.toMatchObject({ code: "internal" });
  });

  it("names a step by scope, kind, name and occurrence", () => {
    expect(stepKeyOf(step(1).entry)).toBe("main/ask#0");
    expect(stepKeyOf({ ...step(1).entry, name: "plan", occurrence: 2 })).toBe("main/ask:plan#2");
  });
});

describe("a holder", () => {
  it("is split at its last dot", () => {
    expect(splitHolder("a.b.t1")).toEqual({ supervisor: "a.b", takeoverId: "t1" });
    expect(splitHolder("t1")).toBeUndefined();
    expect(splitHolder(".t1")).toBeUndefined();
    expect(splitHolder("a.")).toBeUndefined();
  });
});
