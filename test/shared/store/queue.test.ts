import { describe, expect, it } from "vitest";
import { KeyedQueue, Places } from "../../../shared/store/queue.ts";

/** Work that a test ends by hand. */
function held(log: string[], name: string) {
  let end: () => void = () => {};
  const until = new Promise<void>((resolve) => {
    end = resolve;
  });
  const work = async () => {
    log.push(`${name} begins`);
    await until;
    log.push(`${name} ends`);
    return name;
  };
  return { work, end };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("a queue per key", () => {
  it("runs work of one key in order of arrival, and work of another meanwhile", async () => {
    const queue = new KeyedQueue();
    const log: string[] = [];
    const [a, b, c] = [held(log, "a"), held(log, "b"), held(log, "c")];
    const all = [queue.run(["x"], a.work), queue.run(["x"], b.work), queue.run(["y"], c.work)];
    await turn();
    expect(log).toEqual(["a begins", "c begins"]);
    b.end();
    a.end();
    c.end();
    expect(await Promise.all(all)).toEqual(["a", "b", "c"]);
    expect(log.indexOf("a ends")).toBeLessThan(log.indexOf("b begins"));
  });

  it("waits for every key, in whatever order they are named", async () => {
    const queue = new KeyedQueue();
    const log: string[] = [];
    const [a, b, c] = [held(log, "a"), held(log, "b"), held(log, "c")];
    const all = [queue.run(["x", "y"], a.work), queue.run(["y", "x", "y"], b.work), queue.run(["y"], c.work)];
    for (const { end } of [c, b, a]) end();
    await Promise.all(all);
    expect(log).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
  });

  it("goes on after a failure", async () => {
    const queue = new KeyedQueue();
    const failed = queue.run(["x"], () => Promise.reject(new Error("lost")));
    const next = queue.run(["x"], async () => "next");
    await expect(failed).rejects.toThrow("lost");
    expect(await next).toBe("next");
  });
});

describe("places", () => {
  it("are never more than there are, and are given in order of arrival", async () => {
    const places = new Places(2);
    const log: string[] = [];
    const work = ["a", "b", "c", "d"].map((name) => held(log, name));
    const all = work.map((one) => places.run(one.work));
    await turn();
    expect(log).toEqual(["a begins", "b begins"]);
    work[1]?.end();
    await turn();
    expect(log).toEqual(["a begins", "b begins", "b ends", "c begins"]);
    for (const { end } of work) end();
    await Promise.all(all);
    expect(log.filter((line) => line.endsWith("ends"))).toHaveLength(4);
  });
});
