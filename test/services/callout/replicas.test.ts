import { afterAll, beforeAll, expect, test } from "vitest";
import { type Crowd, crowdOf } from "./crowd.ts";
import { type Replica, startReplica } from "./replicas.ts";
import { startSpace, type TestSpace } from "./space.ts";

let at: TestSpace;
let crowd: Crowd;
const replicas: Replica[] = [];
beforeAll(async () => {
  at = await startSpace();
  crowd = await crowdOf(at);
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.kill()));
  await at.stop();
});

test("two replicas share the load; with one killed the other admits everybody", async () => {
  replicas.push(...(await Promise.all([startReplica(at), startReplica(at)])));
  const [one, other] = replicas;
  expect(await crowd.connect(60, 10)).toEqual([]);
  expect(one?.admitted()).toBeGreaterThan(0);
  expect(other?.admitted()).toBeGreaterThan(0);
  await one?.kill();
  // A request that reached the dead one would end in an authorization timeout.
  expect(await crowd.connect(60, 10)).toEqual([]);
});
