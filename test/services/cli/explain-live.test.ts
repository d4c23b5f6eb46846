import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startCallout } from "../../../services/callout/start.ts";
import { runCloseSteps } from "../../../shared/nats/owned.ts";
import { freshNonce, grant, install, keysOf } from "../callout/people.ts";
import { startSpace, type TestSpace } from "../callout/space.ts";
import { mesh } from "./cli.ts";

let at: TestSpace;
let close: () => Promise<void>;
const lines: string[] = [];
beforeAll(async () => {
  at = await startSpace();
  const deps = await at.deps(lines);
  const service = await startCallout(deps);
  close = async () => {
    await service.close();
    await runCloseSteps(deps.owned.closeSteps("callout", "work:callout", "store:callout"));
  };
});
afterAll(async () => {
  await close();
  await at.stop();
});

it("a denied connect is answered in milliseconds, and its reference leads to the reason with one command", async () => {
  const who = await install(at, grant());
  const token = await at.bearers.bearer(who);
  await at.put(keysOf(who).row, { ...who.row, state: "revoked" });
  const times: number[] = [];
  for (let tries = 0; tries < 5; tries += 1) {
    const began = performance.now();
    await expect(at.connect(token, freshNonce())).rejects.toMatchObject({ code: "unauthenticated" });
    times.push(performance.now() - began);
  }
  expect(Math.min(...times)).toBeLessThan(250); // an unanswered one takes 5,000
  const ref = await vi.waitFor(() => {
    const found = /returned an error: permission-denied ref=(\S+)/.exec(at.broker.log())?.[1];
    if (found === undefined) throw new Error("the broker has not logged it yet");
    return found;
  });

  // Where a launched space keeps what its callout says.
  await mkdir(join(at.stateDir, "log"), { recursive: true });
  await writeFile(join(at.stateDir, "log", "callout.log"), lines.join(""));
  const text = await mesh("explain", ref, "--state", at.stateDir);
  expect(text.code).toBe(0);
  expect(text.out).toMatch(/decision +denied, permission-denied/);
  expect(text.out).toMatch(/reason +the actor is not active/);
  expect(text.out).toContain(`${who.owner}.${who.actor}, incarnation ${who.uid}`);
  expect(text.out).toMatch(/do +The client exchanges its login for a new bearer: the actor was revoked/);
  const { out } = await mesh("explain", ref, "--json", "--state", at.stateDir);
  expect(JSON.parse(out)).toMatchObject({ line: { ref, step: 5, check: "actor", code: "permission-denied" } });
});
