import { afterAll, beforeAll, expect, test } from "vitest";
import { startCallout } from "../../../services/callout/start.ts";
import { runCloseSteps } from "../../../shared/nats/owned.ts";
import { type Crowd, crowdOf } from "./crowd.ts";
import { type Replica, startReplica } from "./replicas.ts";
import { startSpace, type TestSpace } from "./space.ts";

/** The broker's own limit for admitting a connection, ms. */
const TIMEOUT = 5_000;

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

test("500 clients at 100 at a time are all admitted", async () => {
  const deps = await at.deps();
  const service = await startCallout(deps);
  expect(await crowd.connect(500, 100)).toEqual([]);
  await service.close();
  await runCloseSteps(deps.owned.closeSteps("callout", "work:callout", "store:callout"));
});

test("a callout killed in the storm keeps no client out for longer than the broker's timeout", async () => {
  replicas.push(...(await Promise.all([startReplica(at), startReplica(at)])));
  const [one, other] = replicas;
  if (!one || !other) throw new Error("no replicas");
  const storm = crowd.persist(500, 100);
  await expect.poll(() => one.admitted(), { timeout: 20_000, interval: 5 }).toBeGreaterThan(30);
  await one.kill();
  const waits = await storm;
  expect(waits).toHaveLength(500);
  // Whoever had asked the dead one is told by the broker, and asks again at once.
  expect(Math.max(...waits)).toBeLessThan(TIMEOUT + 3_000);
  expect(waits.filter((ms) => ms >= TIMEOUT).length).toBeLessThanOrEqual(100);
  expect(other.admitted()).toBeGreaterThan(250);
});
