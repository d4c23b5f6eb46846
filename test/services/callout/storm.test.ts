import { afterAll, beforeAll, expect, test } from "vitest";
import { startCallout } from "../../../services/callout/start.ts";
import { runCloseSteps } from "../../../shared/nats/owned.ts";
import { type Crowd, crowdOf } from "./crowd.ts";
import { startSpace, type TestSpace } from "./space.ts";

let at: TestSpace;
let crowd: Crowd;
beforeAll(async () => {
  at = await startSpace();
  crowd = await crowdOf(at);
});
afterAll(() => at.stop());

test("320 clients at 100 at a time are all admitted", async () => {
  const deps = await at.deps();
  const service = await startCallout(deps);
  expect(await crowd.connect(320, 100)).toEqual([]);
  await service.close();
  await runCloseSteps(deps.owned.closeSteps("callout", "work:callout", "store:callout"));
});
