import { expect, test } from "vitest";
import { type Turn, Turns } from "../../../services/callout/admit.ts";
import type { Ports } from "../../../shared/ports.ts";
import { systemPorts } from "../../../shared/ports.ts";

/** A clock that only `advance` moves. */
function stoppedClock(): Ports & { advance(ms: number): Promise<void> } {
  let now = 0;
  const sleepers = new Set<{ at: number; wake: () => void }>();
  return {
    ...systemPorts,
    monotonic: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const sleeper = { at: now + ms, wake: resolve };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", () => {
          sleepers.delete(sleeper);
          reject(signal.reason);
        });
      }),
    async advance(ms) {
      now += ms;
      for (const sleeper of [...sleepers].filter(({ at }) => at <= now)) {
        sleepers.delete(sleeper);
        sleeper.wake();
      }
      await settled();
    },
  };
}

const settled = async () => {
  for (let round = 0; round < 20; round += 1) await new Promise((resolve) => setImmediate(resolve));
};

const limits = { atOnce: 2, turnMs: 3_000 };

function queue(ports: Ports) {
  const turns = new Turns(ports, limits);
  const came: string[] = [];
  const held = new Map<string, Turn>();
  const ask = (name: string): void => {
    void turns.take().then((turn) => {
      came.push(turn ? name : `${name} late`);
      if (turn) held.set(name, turn);
    });
  };
  const release = async (name: string) => {
    held.get(name)?.release();
    await settled();
  };
  return { turns, came, ask, release };
}

test("so many have a turn at once; the others follow in order of arrival", async () => {
  const { turns, came, ask, release } = queue(stoppedClock());
  for (const name of ["a", "b", "c", "d"]) ask(name);
  await settled();
  expect(came).toEqual(["a", "b"]);
  expect([turns.working, turns.waiting]).toEqual([2, 2]);
  await release("b");
  expect(came).toEqual(["a", "b", "c"]);
  await release("a");
  expect(came).toEqual(["a", "b", "c", "d"]);
});

test("a place is given back once, however often it is released", async () => {
  const { turns, ask, release } = queue(stoppedClock());
  ask("a");
  ask("b");
  await settled();
  await release("a");
  await release("a");
  expect(turns.working).toBe(1);
});

test("a turn that has not come after 3 s never comes, even while no place falls free", async () => {
  const clock = stoppedClock();
  const { turns, came, ask } = queue(clock);
  for (const name of ["a", "b", "c"]) ask(name);
  await clock.advance(1_000);
  ask("d");
  await clock.advance(1_999);
  expect(came).toEqual(["a", "b"]);
  await clock.advance(1);
  expect(came).toEqual(["a", "b", "c late"]);
  await clock.advance(1_000);
  expect(came).toEqual(["a", "b", "c late", "d late"]);
  expect(turns.waiting).toBe(0);
});

test("a storm's leftovers are denied while those at work go on", async () => {
  const clock = stoppedClock();
  const { turns, came, ask, release } = queue(clock);
  for (let index = 0; index < 500; index += 1) ask(String(index));
  await clock.advance(2_999);
  await release("0");
  await clock.advance(1);
  while (turns.waiting > 0) await settled();
  await settled();
  expect(came.filter((name) => name.endsWith("late"))).toHaveLength(497);
});
