import { describe, expect, it } from "vitest";
import { type EvictAsk, evict } from "../../../services/custodian/evict.ts";
import { Rounds } from "../../../services/custodian/round.ts";
import type { Connection, Sweep } from "../../../services/custodian/sweep.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import type { Eviction } from "../../../shared/custody.ts";
import { CUSTODIAN } from "../../../shared/limits.ts";
import type { AccountNkey, Principal, ServerNkey } from "../../../shared/tokens.ts";
import { ownWork, type Work } from "../../../shared/work.ts";
import { waitingClock } from "./clock.ts";

const account = createKeyPair("account").public as AccountNkey;
const server = createKeyPair("server").public as ServerNkey;
const alice = `u_${"a".repeat(26)}.coder` as Principal;
const ours = "local.auth_serve_x" as Principal;
const W = CUSTODIAN.settleBaseMs + 5_000;

type Seen = readonly (readonly [cid: number, principal: Principal])[];
interface Look {
  readonly seen: Seen;
  readonly note?: string;
}

/**
 * A space in which a sweep takes one second. `looks` is what the sweeps see in turn, the last one for ever; each may
 * depend on who was kicked until then.
 */
function space(...looks: ((kicked: readonly number[]) => Seen | Look)[]) {
  const clock = waitingClock();
  const swept: number[] = [];
  const kicked: { cid: number; at: number }[] = [];
  let answerOf: (cid: number) => "kicked" | "gone" | undefined = () => "kicked";
  const sweep = async (): Promise<Sweep> => {
    const startedAt = clock.time;
    const look = (looks[Math.min(swept.length, looks.length - 1)] ?? (() => []))(kicked.map(({ cid }) => cid));
    const { seen, note } = Array.isArray(look) ? { seen: look as Seen, note: undefined } : (look as Look);
    swept.push(startedAt);
    clock.time += 1_000;
    const rows = seen.map(([cid, principal]) => ({ cid, principal }));
    const pages = new Map([[server, { rows }]]);
    const connections = new Map<Principal, Connection[]>();
    for (const [cid, principal] of seen) {
      connections.set(principal, [...(connections.get(principal) ?? []), { server, cid }]);
    }
    return {
      startedAt,
      authTimeoutMs: 5_000,
      walk: () => ({ pages, connections, complete: note === undefined, ...(note === undefined ? {} : { note }) }),
    };
  };
  let turn = async (): Promise<void> => {};
  const kick = async ({ cid }: Connection) => {
    kicked.push({ cid, at: clock.time });
    await turn();
    return answerOf(cid);
  };
  const rounds = new Rounds<EvictAsk>({
    ports: clock,
    maxTargets: 100,
    run: async (members) => evict(members, await sweep(), { account, sweep, kick, ports: clock, limits: CUSTODIAN }),
  });
  return {
    clock,
    swept,
    kicked,
    kicksAre(of: typeof answerOf) {
      answerOf = of;
    },
    /** Each is answered in a later turn; `most` were in flight together. */
    kicksTake() {
      let [now, most] = [0, 0];
      turn = async () => {
        now += 1;
        most = Math.max(most, now);
        await new Promise(setImmediate);
        now -= 1;
      };
      return { most: () => most };
    },
    evict: (principals: Principal[], work: Work = ownWork(clock, 45_000)) =>
      rounds.join<Eviction[]>(principals.length, work, (answer) => ({ principals, answer })),
  };
}

const gone = (principal: Principal, kicked = 0) => ({
  principal,
  kicked,
  remaining: 0,
  verifiedGone: true,
  scanComplete: true,
});

describe("evicting", () => {
  it("kicks at most 16 at once", async () => {
    const many = Array.from({ length: 40 }, (_, at) => [at + 1, ours] as const);
    const { evict, kicked, kicksTake } = space((hit) => (hit.length === 0 ? many : []));
    const { most } = kicksTake();
    expect(await evict([ours])).toEqual([gone(ours, 40)]);
    expect(kicked).toHaveLength(40);
    expect(most()).toBe(CUSTODIAN.kicksInFlight);
  });

  it("verifies our own principals with the first sweep where nobody was there to kick", async () => {
    const { evict, swept } = space(() => [[3, alice]]);
    expect(await evict([ours])).toEqual([gone(ours)]);
    expect(swept).toEqual([1_000]);
  });

  it("verifies others only with a sweep begun W after the request, since a callout may still admit", async () => {
    const { evict, swept, kicked } = space(() => []);
    expect(await evict([alice])).toEqual([gone(alice)]);
    expect(swept).toEqual([1_000, 1_000 + W]);
    expect(kicked).toEqual([]);
  });

  it("counts W from the last arrival of the round", async () => {
    const { evict, clock, swept } = space(() => []);
    const first = evict([alice]);
    clock.time += 700;
    expect((await Promise.all([first, evict([alice])])).flat()).toEqual([gone(alice), gone(alice)]);
    expect(swept).toEqual([1_700, 1_700 + W]);
  });

  it("sweeps again three seconds after the last kick, since clients come back by themselves", async () => {
    const { evict, swept, kicked } = space(
      () => [
        [3, ours],
        [4, ours],
      ],
      () => [],
    );
    expect(await evict([ours])).toEqual([gone(ours, 2)]);
    expect(kicked.map(({ cid }) => cid).sort()).toEqual([3, 4]);
    expect(swept).toEqual([1_000, 2_000 + CUSTODIAN.afterKickMs]);
  });

  it("kicks whoever came back meanwhile, and verifies with one more sweep", async () => {
    const { evict, swept } = space(
      () => [[3, alice]],
      () => [[8, alice]],
      () => [],
    );
    expect(await evict([alice])).toEqual([gone(alice, 2)]);
    expect(swept).toEqual([1_000, 1_000 + W, 2_000 + W + CUSTODIAN.afterKickMs]);
  });

  it("gives up on who keeps coming back after three more tries", async () => {
    let cid = 2;
    const { evict, swept, kicked } = space(() => {
      cid += 1;
      return [[cid, alice]];
    });
    const [eviction] = await evict([alice]);
    expect(eviction).toEqual({
      principal: alice,
      kicked: 4,
      remaining: 1,
      verifiedGone: false,
      scanComplete: true,
      note: "it keeps coming back",
    });
    expect(swept).toHaveLength(2 + CUSTODIAN.evictRounds);
    expect(kicked.map((one) => one.cid)).toEqual([3, 4, 5, 6]);
  });

  it("proves nothing by an incomplete sweep, and says why", async () => {
    const { evict, kicked } = space(
      () => [[3, ours]],
      () => ({ seen: [], note: "server n3: it does not answer CONNZ" }),
    );
    expect(await evict([ours])).toEqual([
      {
        principal: ours,
        kicked: 1,
        remaining: 0,
        verifiedGone: false,
        scanComplete: false,
        note: "server n3: it does not answer CONNZ",
      },
    ]);
    expect(kicked).toHaveLength(1);
  });

  it("may prove by a later sweep what the first one could not", async () => {
    const { evict } = space(
      () => ({ seen: [], note: "server b joined meanwhile" }),
      () => [],
    );
    expect(await evict([alice])).toEqual([gone(alice)]);
  });

  it("answers each request on its own: one that is clear does not wait for one that is not", async () => {
    const { evict, clock, swept } = space(() => [[3, ours]]);
    const clear = evict(["local.auth_serve_y" as Principal]).then(() => clock.time);
    const stuck = evict([ours, "local.auth_serve_z" as Principal]);
    expect(await clear).toBe(2_000);
    expect((await stuck).map(({ verifiedGone }) => verifiedGone)).toEqual([false, true]);
    expect(swept).toHaveLength(2 + CUSTODIAN.evictRounds);
  });

  it("counts acknowledged kicks alone; who was already gone is no kick but waited for", async () => {
    const three: Seen = [
      [3, ours],
      [4, ours],
      [5, ours],
    ];
    const { evict, clock, swept, kicksAre } = space(
      () => three,
      () => [],
    );
    kicksAre((cid) => ({ 3: "kicked" as const, 4: "gone" as const })[cid]);
    const work = ownWork(clock, 45_000);
    expect(await evict([ours], work)).toEqual([gone(ours, 1)]);
    expect(swept[1]).toBe(2_000 + CUSTODIAN.afterKickMs);
    // One kick without a definite answer.
    expect(work.effects.outcome).toBe("unknown");
  });

  it("lets a kick count like an acknowledged commit", async () => {
    const { evict, clock } = space(
      () => [[3, ours]],
      () => [],
    );
    const [kicking, bystander] = [ownWork(clock, 45_000), ownWork(clock, 45_000)];
    await Promise.all([evict([ours], kicking), evict([alice], bystander)]);
    kicking.effects.complete();
    expect(kicking.effects.outcome).toBe("executed");
    expect(bystander.effects.outcome).toBe("not-executed");
  });

  it("tells who has no time for a verifying sweep at once", async () => {
    const { evict, clock, swept } = space(() => [[3, alice]]);
    const [eviction] = await evict([alice], ownWork(clock, W));
    expect(eviction).toMatchObject({ kicked: 1, remaining: 1, verifiedGone: false });
    expect(eviction?.note).toBe("no time was left for a verifying sweep");
    expect(swept).toHaveLength(1);
    expect(clock.time).toBe(2_000);
  });

  it("kicks nobody for a request whose deadline has passed", async () => {
    const { evict, clock, kicked } = space(() => [[3, alice]]);
    const late = evict([alice], ownWork(clock, 900));
    await expect(late).rejects.toThrowError(expect.objectContaining({ code: "deadline-exceeded" }));
    expect(kicked).toEqual([]);
  });

  it("settles for the whole round where one target is not our own", async () => {
    const { evict, swept } = space(() => []);
    await evict([alice, ours]);
    expect((swept[1] ?? 0) - (swept[0] ?? 0)).toBe(W);
  });
});
