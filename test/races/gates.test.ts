/** Freeze against mint, on one server and on three (state §8.2): the proof that one fence is enough. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { credRows } from "../../shared/rows/credential.ts";
import { gateRows } from "../../shared/rows/gate.ts";
import { stageRows } from "../../shared/rows/stage.ts";
import { create, fenced, swap } from "../../shared/store/message.ts";
import { lostOn } from "../../shared/store/write.ts";
import type { Uid } from "../../shared/tokens.ts";
import { startBroker } from "../kit/broker.ts";
import { startCluster } from "../kit/cluster.ts";
import { freshCredentialId, freshUid, frozenGate, openGate, PRINCIPAL, serveCred } from "../kit/rows.ts";
import { openStore, type TestStore } from "../kit/store.ts";

interface Place {
  readonly urls: string[];
  stop(): Promise<void>;
}

const single = async (): Promise<Place> => {
  const broker = await startBroker();
  return { urls: [broker.url], stop: () => broker.stop() };
};

describe.each([
  ["one server", single, 150],
  ["three servers", startCluster, 60],
] as const)("on %s", (_name, start, rounds) => {
  let place: Place;
  let stores: TestStore[];

  beforeAll(async () => {
    place = await start();
    stores = [];
    for (let n = 0; n < 3; n += 1) {
      stores.push(await openStore(place.urls[n % place.urls.length] ?? "", { streams: n === 0 ? undefined : [] } as never));
    }
  });
  afterAll(async () => {
    await Promise.all(stores.map((one) => one.close()));
    await place.stop();
  });

  const at = (n: number): TestStore => {
    const one = stores[n % stores.length];
    if (!one) throw new Error("no store");
    return one;
  };

  it("either the freeze loses the mint its fence, or its enumeration finds the mint", async () => {
    let minted = 0;
    let refused = 0;
    for (let round = 0; round < rounds; round += 1) {
      const uid = freshUid();
      const key = gateRows.key({ uid });
      await at(round).store.commit([create(key, openGate(uid))], at(0).work());
      const attempts = Array.from({ length: 6 }, (_, n) => mint(at(n), uid));
      const { frozenAt, found } = await freeze(at(round + 1), uid);
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
  const { endpoint: _e, processEpoch: _p, registrationRevision: _r, nameAuthorityRevision: _n, ...cred } = serveCred(uid, {
    credentialId: freshCredentialId(),
  });
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
