/** Freeze against mint, on one server and on three (state §8.2): the proof that one fence is enough. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { credRows } from "../../shared/rows/credential.ts";
import { gateRows } from "../../shared/rows/gate.ts";
import { stageRows } from "../../shared/rows/stage.ts";
import { create, fenced, swap } from "../../shared/store/message.ts";
import { lostOn } from "../../shared/store/write.ts";
import type { Uid } from "../../shared/tokens.ts";
import { type Place, startPlace } from "../kit/places.ts";
import { freshCredentialId, freshUid, frozenGate, openGate, PRINCIPAL, rootCred } from "../kit/rows.ts";
import type { TestStore } from "../kit/store.ts";

describe.each([
  ["one server", 1, 150],
  ["three servers", 3, 60],
] as const)("on %s", (_name, servers, rounds) => {
  let place: Place;
  beforeAll(async () => {
    place = await startPlace(servers);
  });
  afterAll(() => place.stop());

  it("either the freeze loses the mint its fence, or its enumeration finds the mint", async () => {
    let minted = 0;
    let refused = 0;
    for (let round = 0; round < rounds; round += 1) {
      const uid = freshUid();
      const key = gateRows.key({ uid });
      await place.at(round).store.commit([create(key, openGate(uid))], place.at(round).work());
      const attempts = Array.from({ length: 6 }, (_, n) => mint(place.at(n), uid));
      const { frozenAt, found } = await freeze(place.at(round + 1), uid);
      const won = (await Promise.all(attempts)).filter((revision) => revision !== undefined);
      minted += won.length;
      refused += attempts.length - won.length;
      expect(won.every((revision) => revision < frozenAt)).toBe(true);
      expect(found).toEqual([...won].sort((a, b) => a - b));
    }
    // Neither side always wins, or the race was none.
    expect(minted).toBeGreaterThan(0);
    expect(refused).toBeGreaterThan(0);
  });
});

/** The revision of the row that was minted, nothing if the gate was lost or not open. */
async function mint(on: TestStore, uid: Uid): Promise<number | undefined> {
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
  const gate = await on.store.read(gateRows.key({ uid }), on.work());
  if (gate?.value.state !== "open") return undefined;
  const cred = { ...rootCred(uid), credentialId: freshCredentialId() };
  const key = credRows.key({ uid, credentialId: cred.credentialId });
  try {
    const [revision] = await on.store.commit([fenced(key, cred, gate)], on.work());
    return revision;
  } catch (error) {
    if (lostOn(error, gate.key)) return undefined;
    throw error;
  }
}

async function freeze(on: TestStore, uid: Uid): Promise<{ frozenAt: number; found: number[] }> {
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 6));
  const gate = await on.store.read(gateRows.key({ uid }), on.work());
  if (!gate) throw new Error("no gate");
  const frozen = frozenGate(uid);
  const opId = frozen.op?.opId ?? freshUid();
  const stage = {
    v: 1 as const,
    opId,
    kind: "retirement" as const,
    gate: gate.key.key,
    fromGeneration: 1,
    principal: PRINCIPAL,
    evicted: [],
    startedBy: "test",
    at: Date.now(),
    phase: "frozen" as const,
  };
  const messages = [swap(gate, frozen), create(stageRows.key({ opId }), stage)];
  const [frozenAt = 0] = await on.store.commit(messages, on.work());
  const { entries } = await on.store.scan(credRows, { uid }, on.work());
  return { frozenAt, found: entries.map(({ revision }) => revision).sort((a, b) => a - b) };
}
