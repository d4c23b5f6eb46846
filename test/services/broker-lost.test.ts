/** Services whose broker goes away: they wait for it, and end without it where they are told to. */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { actorList } from "../../shared/contracts/auth/actors/actor-list.ts";
import { newNonce, systemPorts } from "../../shared/ports.ts";
import { RequestId } from "../../shared/tokens.ts";
import type { Host } from "../kit/hosting.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";

const SERVICES = ["custodian", "auth", "exchange", "callout"] as const;

let space: TestSpace;
let host: Host;

beforeAll(async () => {
  space = await startSpace({ services: SERVICES });
  const [first] = space.hosts;
  if (!first) throw new Error("no host");
  host = first;
});
afterAll(() => space.stop());

const answers = () =>
  space.operator.call(actorList, { requestId: RequestId.parse(newNonce(systemPorts)) }, { deadlineMs: 2_000 });

it("a restarted broker finds every service again, and no observation", async () => {
  const subject = `cotal.${space.space}.ep.v1.inst.manager.x.run-start.y`;
  space.roots.space.publish(subject, "{}");
  const observed = () => space.store.lastSeq("observations");
  await vi.waitFor(async () => expect(await observed()).toBe(1));
  await space.broker.kill("SIGKILL");
  await vi.waitFor(() => expect(host.services.some((service) => service.ready())).toBe(false), 5_000);
  await space.broker.restart();
  await vi.waitFor(() => expect(host.services.every((service) => service.ready())).toBe(true), {
    timeout: 20_000,
    interval: 100,
  });
  expect((await answers()).actors).toEqual([]);
  expect(await observed()).toBe(0); // in memory: managers ask their callers to publish again
});

it("services drain although there is no broker, and close once their claim can be released", async () => {
  await space.broker.kill("SIGKILL");
  await Promise.all(host.services.map((service) => service.drain()));
  await expect(host.stop()).rejects.toThrow("failed: plane");
  await space.broker.restart();
  await host.stop();
  expect(host.owned.list().every(({ ended }) => ended)).toBe(true);
});
