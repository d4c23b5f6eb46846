/** No room for another row: writes and connects wait, nothing is half-written, and it goes on as soon as there is (lifecycles §9). */
import { execFileSync } from "node:child_process";
import { mkdtemp, open, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { actorGrant } from "../../shared/contracts/auth/actors/actor-grant.ts";
import { actorList } from "../../shared/contracts/auth/actors/actor-list.ts";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { isAuthorityError } from "../../shared/errors.ts";
import { actorRows } from "../../shared/rows/actor.ts";
import { uidRows } from "../../shared/rows/uid.ts";
import { create } from "../../shared/store/message.ts";
import { Actor, Owner } from "../../shared/tokens.ts";
import { startBroker } from "../kit/broker.ts";
import { ownerOf } from "../kit/logins.ts";
import { ACTOR, freshUid, OWNER, PRINCIPAL } from "../kit/rows.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { openStore } from "../kit/store.ts";
import { unchanged } from "../kit/unchanged.ts";
import { lifecycle, named, requestId, rowsOf } from "../services/auth/lifecycles.ts";

describe("a broker at its storage limit", () => {
  let space: TestSpace;
  beforeAll(async () => {
    space = await startSpace({
      services: ["custodian", "auth", "exchange", "callout"],
      authTimeoutS: 1,
      broker: { jetstream: "max_file_store: 4MB" },
    });
  });
  afterAll(() => space.stop());

  const api = (subject: string, body: object) =>
    space.roots.authority.request(`$JS.API.${subject}`, JSON.stringify(body), { timeout: 5_000 });

  async function fill(): Promise<void> {
    await api("STREAM.CREATE.FILLER", { name: "FILLER", subjects: ["filler"], storage: "file" });
    for (const size of [32_768, 512, 1]) {
      for (let full = false; !full; ) {
        const ack = await space.roots.authority.request("filler", "x".repeat(size), { timeout: 5_000 });
        full = ack.json<{ error?: object }>().error !== undefined;
      }
    }
  }
  const empty = () => api("STREAM.DELETE.FILLER", {});

  it("refuses every write as `unavailable`, with nothing written, reads on, and then does what is repeated", async () => {
    const alice = await space.person("alice");
    const bearer = await alice.bearer();
    const person = await lifecycle(space, { owner: Owner.parse("local"), kind: "interactive" });
    const owner = await ownerOf(space, "bob");
    const lists = { scope: [], allowSubscribe: [], allowPublish: [] };
    const grant = () => ({ requestId: requestId(), owner, actor: Actor.parse("cli"), ...lists });
    await fill();

    await unchanged(space, "unavailable", () => space.operator.call(actorGrant, grant(), { once: true }));
    await unchanged(space, "unavailable", () => space.operator.call(actorRevoke, named(person), { once: true }));
    const since = performance.now();
    await expect(alice.connectWith(bearer)).rejects.toMatchObject({ code: "unauthenticated" });
    expect(performance.now() - since).toBeLessThan(1_000); // answered, and not left to the broker's timeout
    expect(space.hosts[0]?.lines.find((line) => line.includes('"decision":'))).toContain('"code":"unavailable"');
    expect(await space.store.read(actorRows.key({ owner, actor: Actor.parse("cli") }))).toBeUndefined();
    expect((await rowsOf(space, person)).gate?.state).toBe("open");
    const { actors } = await space.operator.call(actorList, { requestId: requestId(), owner: alice.owner });
    expect(actors).toHaveLength(1);

    await empty();
    await (await alice.connectWith(bearer)).connection.close();
    expect(await space.operator.call(actorGrant, grant())).toMatchObject({ owner });
    expect(await space.operator.call(actorRevoke, named(person))).toMatchObject({ retired: true });
  });
});

/** Only a privileged process may make a small file system. */
function mayMount(): boolean {
  const probe = join(tmpdir(), `mount-${process.pid}`);
  try {
    execFileSync("sh", ["-c", `mkdir ${probe} && mount -t tmpfs tmpfs ${probe} && umount ${probe}`], {
      stdio: "ignore",
    });
    return true;
  } catch {
    return false;
  } finally {
    execFileSync("sh", ["-c", `rmdir ${probe} 2>/dev/null || true`]);
  }
}

describe.skipIf(!mayMount())("a file system that is full", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "small-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", folder]);
  });
  afterAll(async () => {
    execFileSync("umount", [folder]);
    await rmdir(folder);
  });

  it("takes no commit in part; what it took stands once there is room and the broker is started again", async () => {
    const broker = await startBroker({
      jetstream: false,
      config: `jetstream { store_dir: "${folder}/store", sync_interval: always }`,
    });
    let on = await openStore(broker.url, { streams: ["auth"] });
    const reservation = { owner: OWNER, actor: ACTOR, mintedBy: PRINCIPAL };
    const taken: string[] = [];
    const refused: string[] = [];
    const commit = async (rows: number, ms: number): Promise<string> => {
      const keys = Array.from({ length: rows }, () => uidRows.key({ uid: freshUid() }));
      const names = keys.map(({ key }) => key);
      try {
        await on.store.commit(
          keys.map((key) => create(key, reservation)),
          on.work(ms),
        );
        taken.push(...names);
        return "ok";
      } catch (error) {
        if (!isAuthorityError(error)) throw error;
        if (error.outcome === "not-executed") refused.push(...names);
        return error.code;
      }
    };
    await commit(2, 5_000);
    await exhaust(join(folder, "filler"));
    const ends = new Set<string>();
    // A row may still fit into the page that the last one began.
    for (let n = 0; n < 40 && !ends.has("unavailable"); n += 1) ends.add(await commit(1, 600));
    ends.add(await commit(2, 600));
    expect([...ends].filter((end) => end !== "ok")).toEqual(["unavailable"]);

    await rm(join(folder, "filler"));
    await on.close();
    await broker.restart();
    on = await openStore(broker.url, { streams: [] });
    const { entries, corrupt } = await on.store.scan(uidRows, {}, on.work(10_000));
    const stored = entries.map(({ key }) => key.key);
    expect(corrupt).toEqual([]);
    expect(stored).toEqual(expect.arrayContaining(taken));
    expect(stored.filter((key) => refused.includes(key))).toEqual([]);
    expect(await commit(2, 5_000)).toBe("ok");
    await on.close();
    await broker.stop();
  });
});

async function exhaust(path: string): Promise<void> {
  const file = await open(path, "w");
  try {
    for (;;) await file.write(Buffer.alloc(4_096));
  } catch {
    await file.close();
  }
}
