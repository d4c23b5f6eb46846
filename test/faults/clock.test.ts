/** Clocks of ours that step: tokens are judged by them, and nothing else is (lifecycles §9). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { type Ports, systemPorts } from "../../shared/ports.ts";
import { planeRows } from "../../shared/rows/plane.ts";
import { Owner } from "../../shared/tokens.ts";
import type { Person } from "../kit/person.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { lifecycle, named } from "../services/auth/lifecycles.ts";
import { stored } from "../services/auth/scene.ts";

const HOUR = 3_600_000;

/** Seconds, waits and randomness as they are; the wall clock is off by as much as the test says. */
const off = { auth: 0, exchange: 0, callout: 0 };
const portsOf = (service: keyof typeof off): Ports => ({ ...systemPorts, now: () => Date.now() + off[service] });

let space: TestSpace;
let alice: Person;
let bearer: string;
beforeAll(async () => {
  space = await startSpace({
    services: ["custodian", "auth", "exchange", "callout"],
    authTimeoutS: 1,
    change: (service) => (service === "custodian" ? {} : { ports: portsOf(service) }),
  });
  alice = await space.person("alice");
  bearer = await alice.bearer();
});
afterAll(() => space.stop());

async function connects(ms: number): Promise<string> {
  off.callout = ms;
  const before = space.hosts[0]?.lines.length;
  const connecting = alice.connectWith(bearer);
  await connecting.then(({ connection }) => connection.close()).catch(() => {});
  const lines = (space.hosts[0]?.lines.slice(before) ?? []).map((line) => JSON.parse(line));
  const { decision, code } = lines.find(({ decision }) => decision !== undefined);
  off.callout = 0;
  return decision === "denied" ? code : decision;
}

it("a callout behind refuses bearers beyond 5 s; one far ahead takes every server for one that has stopped waiting", async () => {
  expect(await connects(0)).toBe("admitted");
  expect(await connects(-4_000)).toBe("admitted");
  expect(await connects(-10_000)).toBe("unauthenticated");
  expect(await connects(HOUR)).toBe("silent");
});

it("an exchange ahead ends logins early, one behind refuses them beyond 5 s", async () => {
  const exchanges = (ms: number) => {
    off.exchange = ms;
    return alice.bearer().then(
      () => "given",
      ({ code }) => code,
    );
  };
  expect(await exchanges(-4_000)).toBe("given");
  expect(await exchanges(-10_000)).toBe("unauthenticated");
  expect(await exchanges(HOUR)).toBe("unauthenticated");
  expect(await exchanges(0)).toBe("given");
});

it.each([
  ["ahead", HOUR],
  ["behind", -HOUR],
])("an hour %s the claim is kept and a retirement takes no longer", async (_name, ms) => {
  const { claimId } = await stored(space, planeRows.key({}));
  const of = await lifecycle(space, { owner: Owner.parse("local"), kind: "interactive" });
  off.auth = ms;
  const since = performance.now();
  expect(await space.operator.call(actorRevoke, named(of), { once: true })).toMatchObject({ retired: true });
  expect(performance.now() - since).toBeLessThan(5_000);
  off.auth = 0;
  expect((await stored(space, planeRows.key({}))).claimId).toBe(claimId);
  expect(space.hosts[0]?.services.every((service) => service.ready())).toBe(true);
});
