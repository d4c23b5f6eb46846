/** Concurrent writes from several processes, on one server and on three (pitfalls 12, 13). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { admissionRows } from "../../shared/rows/admission.ts";
import { credRows } from "../../shared/rows/credential.ts";
import type { Entry } from "../../shared/rows/family.ts";
import { type Gate, gateRows } from "../../shared/rows/gate.ts";
import { uidRows } from "../../shared/rows/uid.ts";
import { create, fenced, touch } from "../../shared/store/message.ts";
import { lostOn } from "../../shared/store/write.ts";
import { RunId } from "../../shared/tokens.ts";
import { type Place, startPlace } from "../kit/places.ts";
import {
  ACTOR,
  admission,
  freshCredentialId,
  freshUid,
  MANAGER,
  OWNER,
  openGate,
  PRINCIPAL,
  rootCred,
} from "../kit/rows.ts";
import { openStore } from "../kit/store.ts";

const reservation = { owner: OWNER, actor: ACTOR, mintedBy: PRINCIPAL };

describe.each([
  ["one server", 1],
  ["three servers", 3],
] as const)("on %s", (_name, servers) => {
  let place: Place;
  beforeAll(async () => {
    place = await startPlace(servers);
  });
  afterAll(() => place.stop());

  async function gate(): Promise<Entry<Gate>> {
    const uid = freshUid();
    const key = gateRows.key({ uid });
    const [revision = 0] = await place.at(0).store.commit([create(key, openGate(uid))], place.at(0).work());
    return { key, value: openGate(uid), revision };
  }

  /** How each attempt ended, at most one of them well. */
  async function race(attempt: (n: number) => Promise<unknown>, key: { readonly key: string }): Promise<void> {
    const ends = await Promise.allSettled(Array.from({ length: 6 }, (_, n) => attempt(n)));
    const lost = ends.filter((end) => end.status === "rejected");
    expect(ends.length - lost.length).toBe(1);
    for (const { reason } of lost) expect(lostOn(reason, key), String(reason)).toBe(true);
  }

  it("exactly one of many swaps of a row wins, the others lose on it", async () => {
    for (let round = 0; round < 20; round += 1) {
      const entry = await gate();
      await race((n) => place.at(n).store.commit([touch(entry)], place.at(n).work()), entry.key);
    }
  });

  it("exactly one of many creations of a row wins", async () => {
    for (let round = 0; round < 20; round += 1) {
      const key = uidRows.key({ uid: freshUid() });
      await race((n) => place.at(n).store.commit([create(key, reservation)], place.at(n).work()), key);
    }
  });

  it("exactly one of many batches over a row wins, and no part of the others stays", async () => {
    for (let round = 0; round < 10; round += 1) {
      const entry = await gate();
      const own = Array.from({ length: 6 }, () => uidRows.key({ uid: freshUid() }));
      const commit = (n: number) => {
        const key = own[n];
        if (!key) throw new Error("no row");
        return place.at(n).store.commit([create(key, reservation), touch(entry)], place.at(n).work());
      };
      await race(commit, entry.key);
      const there = await Promise.all(own.map((key) => place.at(0).store.read(key)));
      expect(there.filter((row) => row !== undefined)).toHaveLength(1);
    }
  });

  it("writes fenced on one row that stands all succeed, whatever the broker says of them in passing", async () => {
    const fence = await gate();
    const uid = fence.value.lifecycleUid;
    const mints = Array.from({ length: 60 }, (_, n) => {
      const cred = { ...rootCred(uid), credentialId: freshCredentialId() };
      const key = credRows.key({ uid, credentialId: cred.credentialId });
      return place.at(n).store.commit([fenced(key, cred, fence)], place.at(n).work(20_000));
    });
    expect(new Set((await Promise.all(mints)).flat()).size).toBe(60);
    expect((await place.at(0).store.scan(credRows, { uid })).entries).toHaveLength(60);
  });

  it("more batches than the broker takes in flight, from several processes, all land", async () => {
    const more = await Promise.all(
      place.stores.slice(0, 2).map((one) => openStore(one.connection.getServer(), { streams: [] })),
    );
    const all = [...place.stores, ...more];
    const batches = all.flatMap((one) =>
      Array.from({ length: 24 }, () => {
        const keys = [freshUid(), freshUid(), freshUid()].map((uid) => uidRows.key({ uid }));
        return one.store.commit(
          keys.map((key) => create(key, reservation)),
          one.work(25_000),
        );
      }),
    );
    expect(new Set((await Promise.all(batches)).flat()).size).toBe(all.length * 24 * 3);
    await Promise.all(more.map((one) => one.close()));
  });

  it("a write-once row is written once, and a second one is a conflict on it", async () => {
    const runId = RunId.parse(`run-${"0".repeat(32)}`);
    const key = admissionRows.key({ endpoint: MANAGER, runId });
    const row = admission(runId);
    await race((n) => place.at(n).store.commit([create(key, row)], place.at(n).work()), key);
    // Fenced on another row, it meets the broker's own refusal of a second message (10077).
    const other = admissionRows.key({ endpoint: MANAGER, runId: RunId.parse(`run-${"1".repeat(32)}`) });
    const late = place.at(0).store.commit([fenced(key, row, { key: other, revision: 0 })], place.at(0).work());
    expect(lostOn(await late.catch((error: unknown) => error), key)).toBe(true);
  });
});
