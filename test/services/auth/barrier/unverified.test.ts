/** A barrier goes no further than the proof that nobody is left: it waits, denies meanwhile, and gives its place back (lifecycles §1, §9). */
import type { NatsConnection } from "@nats-io/nats-core";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { unfinished } from "../../../../services/auth/barrier/metrics.ts";
import { actorRevoke } from "../../../../shared/contracts/auth/actors/actor-revoke.ts";
import { encodeJwt, identityTags, userClaims } from "../../../../shared/credentials/jwt.ts";
import { createKeyPair, keyPairFromSeed } from "../../../../shared/credentials/nkeys.ts";
import { BARRIER } from "../../../../shared/limits.ts";
import { loadSecret, SECRET } from "../../../../shared/secrets/keys.ts";
import { Owner, type Triple } from "../../../../shared/tokens.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { credentialStates, type Lifecycle, lifecycle, named, rowsOf } from "../lifecycles.ts";

/** What the callout may still admit need not be waited for. */
const owner = Owner.parse("local");
const WITHIN = { timeout: 20_000, interval: 50 };

let space: TestSpace;
beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth"], authTimeoutS: 1 });
});
afterAll(() => space.stop());

const person = () => lifecycle(space, { owner, kind: "interactive" });
const ask = (of: Lifecycle, deadlineMs: number) =>
  space.operator.call(actorRevoke, named(of), { deadlineMs, once: true });

/** Connected under a JWT that the data account signed, as a manager's credentials are. */
async function directly(whose?: Triple): Promise<NatsConnection> {
  const { dataAccount } = await loadSecret(space.secrets, space.space, SECRET.serviceKeys);
  const key = createKeyPair("user");
  const claims = userClaims({
    subject: key.public,
    name: "test",
    issuerAccount: dataAccount.pub,
    permissions: { pub: { allow: [], deny: [">"] }, sub: { allow: [`_INBOX_${key.public}.>`], deny: [] } },
    tags: whose ? identityTags(whose.owner, whose.actor, whose.uid) : [],
    iat: Math.floor(Date.now() / 1_000),
  });
  return space.enter("test", { jwt: encodeJwt(claims, keyPairFromSeed(dataAccount.signingSeed)), key });
}

async function expectWaiting(of: Lifecycle): Promise<void> {
  expect(await rowsOf(space, of)).toMatchObject({
    actor: { state: "revoked" },
    head: { state: "retiring" },
    gate: { state: "frozen" },
    stage: { phase: "frozen" },
  });
  expect(await credentialStates(space, of)).toEqual(["revoked"]);
}

const stops = async (): Promise<number> => {
  const { values } = await unfinished.get();
  return values.find(({ labels }) => labels.kind === "retirement" && labels.step === "evict")?.value ?? 0;
};

it("waits while a connection is nobody's; more than run at once all end once it has left", async () => {
  const stranger = await directly();
  const people = await Promise.all(Array.from({ length: BARRIER.atOnce + 1 }, person));
  const before = await stops();
  const ends = await Promise.all(people.map((of) => ask(of, 2_500).catch((error: unknown) => error)));
  for (const end of ends) expect(end).toMatchObject({ code: "unavailable", outcome: "unknown", details: [] });
  await Promise.all(people.map(expectWaiting));
  // Each had its turn: who waits gives its place back.
  await vi.waitFor(async () => expect(await stops()).toBeGreaterThan(before + BARRIER.atOnce), WITHIN);
  await stranger.close();
  await Promise.all(people.map(async (of) => expect(await ask(of, 20_000)).toMatchObject({ retired: true })));
});

it("waits while whoever holds a directly signed JWT keeps coming back, and ends once it stays away", async () => {
  const of = await person();
  const stubborn = await directly(of);
  await expect(ask(of, 2_500)).rejects.toMatchObject({ code: "unavailable", outcome: "unknown" });
  await expectWaiting(of);
  expect(stubborn.isClosed()).toBe(false);
  await stubborn.close();
  await vi.waitFor(async () => expect(await ask(of, 5_000)).toMatchObject({ retired: true }), WITHIN);
});
