/** A revoke among issuances on the actor's behalf: whatever was released is found and revoked (state §8.2, §8.3). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { credentialIdOf } from "../../shared/canonical.ts";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { managerPrepare } from "../../shared/contracts/auth/manager/prepare.ts";
import { isAuthorityError } from "../../shared/errors.ts";
import { epCredRows } from "../../shared/rows/credential.ts";
import type { TestManager } from "../kit/manager.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { named } from "../services/auth/lifecycles.ts";
import { MANAGER } from "../services/auth/scene.ts";

const ROUNDS = 16;
const MINTS = 6;
/** What a mint that comes too late may be told. */
const TOO_LATE = ["permission-denied", "failed-precondition", "conflict"];

let space: TestSpace;
beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange"], replicas: 2, authTimeoutS: 1 });
});
afterAll(() => space.stop());

const later = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, Math.random() * ms));

/** The ids of the credentials that an issuance released, or the code of its refusal. */
async function prepare(manager: TestManager): Promise<readonly string[] | string> {
  await later(150);
  const args = {
    ...manager.envelope(),
    kind: "manager-service-authority" as const,
    operation: "prepare" as const,
  };
  try {
    const { credentials } = await manager.person.ask(managerPrepare, args);
    return Object.values(credentials).map(({ jwt }) => credentialIdOf(jwt));
  } catch (error) {
    if (isAuthorityError(error)) return error.code;
    throw error;
  }
}

it("leaves no credential active that was issued on the actor's behalf, and releases none afterwards", async () => {
  let released = 0;
  const refusals: string[] = [];
  const round = async (n: number): Promise<void> => {
    const person = await space.person(`person-${n}`, { scope: ["supervise"] });
    const manager = await space.manager(person, { upTo: "none" });
    const first = await prepare(manager);
    const mints = Array.from({ length: MINTS }, () => prepare(manager));
    await Promise.race(mints);
    const revoke = space.operator.call(actorRevoke, named(person), { deadlineMs: 60_000 });
    const answers = [first, ...(await Promise.all(mints))];
    expect(await revoke).toMatchObject({ retired: true });
    const ids = answers.flatMap((answer) => (typeof answer === "string" ? [] : answer));
    refusals.push(...answers.filter((answer) => typeof answer === "string"));
    released += ids.length;
    const { instanceId } = manager;
    const { entries } = await space.store.scan(epCredRows, { endpoint: MANAGER, instanceId });
    expect(entries.map(({ value }) => value.credentialId).sort()).toEqual([...ids].sort());
    expect(entries.map(({ value }) => value.state)).toEqual(entries.map(() => "revoked"));
    expect(await prepare(manager)).toBe("permission-denied");
  };
  await Promise.all(Array.from({ length: ROUNDS }, (_, n) => round(n)));
  expect(refusals.filter((code) => !TOO_LATE.includes(code))).toEqual([]);
  // Neither side always wins, or the race was none.
  expect(released).toBeGreaterThan(ROUNDS * 2);
  expect(refusals.length).toBeGreaterThan(0);
});
