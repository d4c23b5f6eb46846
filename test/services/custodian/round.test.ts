import { describe, expect, it } from "vitest";
import { type Member, Rounds } from "../../../services/custodian/round.ts";
import { ownWork } from "../../../shared/work.ts";
import { waitingClock } from "./clock.ts";

interface Ask {
  readonly name: string;
  answer(result: string): void;
}

function setUp(maxTargets = 4) {
  const clock = waitingClock();
  const rounds: { members: readonly Member<Ask>[]; end: (error?: Error) => void }[] = [];
  const started: (() => void)[] = [];
  const merged = new Rounds<Ask>({
    ports: clock,
    maxTargets,
    run: (members) =>
      new Promise((resolve, reject) => {
        rounds.push({ members, end: (error) => (error ? reject(error) : resolve()) });
        for (const go of started.splice(0)) go();
      }),
  });
  const join = (
    name: string,
    { targets = 1, ms = 1_000, signal }: { targets?: number; ms?: number; signal?: AbortSignal } = {},
  ) => merged.join<string>(targets, ownWork(clock, ms, signal), (answer) => ({ name, answer }));
  /** The n-th round, once it runs. */
  const round = async (n: number) => {
    while (rounds.length < n) await new Promise<void>((resolve) => started.push(resolve));
    const found = rounds[n - 1];
    if (!found) throw new Error("no such round");
    const names = found.members.map(({ ask }) => ask.name);
    const finish = (error?: Error) => {
      if (!error) for (const { ask, open } of found.members) if (open) ask.answer(`${ask.name} in ${n}`);
      found.end(error);
    };
    return { ...found, names, finish };
  };
  return { clock, merged, join, round };
}

const code = (value: string) => expect.objectContaining({ code: value });

describe("rounds", () => {
  it("runs what arrives at once together, and what arrives meanwhile in the next", async () => {
    const { clock, join, round } = setUp();
    const early = [join("a"), join("b")];
    const first = await round(1);
    expect(first.names).toEqual(["a", "b"]);
    clock.time += 10;
    const late = [join("c")];
    clock.time += 10;
    late.push(join("d"));
    first.finish();
    expect(await Promise.all(early)).toEqual(["a in 1", "b in 1"]);
    const second = await round(2);
    expect(second.names).toEqual(["c", "d"]);
    expect(second.members.map(({ arrivedAt }) => arrivedAt)).toEqual([1_010, 1_020]);
    second.finish();
    expect(await Promise.all(late)).toEqual(["c in 2", "d in 2"]);
  });

  it("drops who waited past the deadline or was given up, and runs nothing for them alone", async () => {
    const { clock, join, round } = setUp();
    const running = join("a", { ms: 9_000 });
    const first = await round(1);
    const given = new AbortController();
    const [late, up] = [join("late", { ms: 50 }), join("up", { signal: given.signal })];
    given.abort();
    clock.time += 50;
    first.finish();
    await running;
    await expect(late).rejects.toThrowError(code("deadline-exceeded"));
    await expect(up).rejects.toThrowError(code("unavailable"));
    const next = join("b");
    expect((await round(2)).names).toEqual(["b"]);
    (await round(2)).finish();
    expect(await next).toBe("b in 2");
  });

  it("has room for so many targets in the next round, whatever the running one has", async () => {
    const { clock, merged, join, round } = setUp(4);
    const all = [join("a", { targets: 4, ms: 9_000 })];
    const first = await round(1);
    all.push(join("b", { targets: 3 }));
    expect(() => merged.assertRoom(2)).toThrowError(code("resource-exhausted"));
    expect(() => join("c", { targets: 2 })).toThrowError(code("resource-exhausted"));
    all.push(join("d", { targets: 1, ms: 9_000 }));
    // A place is free again once its holder ran out of time.
    clock.time += 1_000;
    all.push(join("e", { targets: 3 }));
    await expect(all[1]).rejects.toThrowError(code("deadline-exceeded"));
    first.finish();
    const second = await round(2);
    expect(second.names).toEqual(["d", "e"]);
    second.finish();
    expect(await Promise.all([all[0], all[2], all[3]])).toEqual(["a in 1", "d in 2", "e in 2"]);
  });

  it("closes a member at its deadline, while the round goes on for the others", async () => {
    const { clock, join, round } = setUp();
    const [short, long] = [join("short", { ms: 100 }), join("long", { ms: 1_000 })];
    const first = await round(1);
    clock.time += 100;
    expect(first.members.map(({ open }) => open)).toEqual([false, true]);
    first.finish();
    await expect(short).rejects.toThrowError(code("deadline-exceeded"));
    expect(await long).toBe("long in 1");
  });

  it("refuses everybody of a round that failed, and runs the next", async () => {
    const { join, round } = setUp();
    const [one, two] = [join("a"), join("b")];
    const first = await round(1);
    const next = join("c");
    first.finish(new Error("the round broke"));
    await expect(one).rejects.toThrowError("the round broke");
    await expect(two).rejects.toThrowError("the round broke");
    (await round(2)).finish();
    expect(await next).toBe("c in 2");
  });

  it("takes a member in time that a round left unanswered for a fault of ours", async () => {
    const { join, round } = setUp();
    const forgotten = join("a");
    (await round(1)).end();
    await expect(forgotten).rejects.toThrowError(code("internal"));
  });
});
