import { expect, it } from "vitest";
import { atOnce } from "../../shared/at-once.ts";

it("does the same for each, so many at a time, and gives the results in order", async () => {
  let [running, most] = [0, 0];
  const started: number[] = [];
  const results = await atOnce(3, [5, 1, 4, 2, 3, 0], async (turns) => {
    started.push(turns);
    running += 1;
    most = Math.max(most, running);
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    running -= 1;
    return turns * 10;
  });
  expect(results).toEqual([50, 10, 40, 20, 30, 0]);
  expect(started).toEqual([5, 1, 4, 2, 3, 0]);
  expect(most).toBe(3);
});

it("begins nothing after a failure, and throws it", async () => {
  const started: number[] = [];
  const act = async (at: number) => {
    started.push(at);
    await Promise.resolve();
    if (at === 1) throw new Error("the second");
    return at;
  };
  await expect(atOnce(2, [0, 1, 2, 3, 4, 5], act)).rejects.toThrow("the second");
  await Promise.resolve();
  expect(started.length).toBeLessThan(5);
});

it("of nothing is nothing", async () => {
  expect(await atOnce(8, [], () => Promise.reject(new Error("never")))).toEqual([]);
});
