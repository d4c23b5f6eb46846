/**
 * The process that runs barriers is killed: after each step of each kind, after each step of its own registration, and
 * at moments that a seed draws. The next one ends whatever was begun; nothing happens twice, nobody comes back.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Moment } from "../../services/auth/barrier/kinds.ts";
import { askConnectionLiveness } from "../../shared/custody.ts";
import { systemPorts } from "../../shared/ports.ts";
import { artifactRows } from "../../shared/rows/artifact.ts";
import type { Entry } from "../../shared/rows/family.ts";
import { type Plane, planeRows } from "../../shared/rows/plane.ts";
import { placeOf } from "../../shared/store/streams.ts";
import { CommitLost } from "../../shared/store/write.ts";
import { ownWork } from "../../shared/work.ts";
import type { TestSpace } from "../kit/space.ts";
import type { Ends } from "./auth.ts";
import { Chance } from "./chance.ts";
import { History } from "./history.ts";
import { violations } from "./invariants.ts";
import { CONTRACT } from "./managers.ts";
import { type Replica, Replicas } from "./replica.ts";
import { ROUNDS, STRAYS, startChaos } from "./space.ts";
import { wrongTransitions } from "./transitions.ts";
import { KINDS, type Makes, type Victim } from "./victims.ts";

const SLOT = "1";
/** Of `auth`'s own registration. */
const OWN: readonly Moment[] = ["freeze", "revoke", "contain", "evict", "finish"];

/** The holder runs eight retirements at once and no more: one process dies in those of persons, one in those of agents. */
const TOGETHER = [KINDS.filter((_, at) => at % 2 === 0), KINDS.filter((_, at) => at % 2 === 1)];

let killed = 0;
let interrupted = 0;
const begun = performance.now();
afterAll(() => {
  const seconds = Math.round((performance.now() - begun) / 1_000);
  console.info(
    `${ROUNDS.length} rounds, ${killed} processes killed, ${interrupted} barriers interrupted, ${seconds} s`,
  );
});

describe.each(ROUNDS)("servers: $servers, round $round, CHAOS_SEED=$seed", { timeout: 180_000, retry: 0 }, (round) => {
  const chance = new Chance(round.seed);
  let space: TestSpace;
  let replicas: Replicas;
  let history: History;
  let current: Replica | undefined;

  beforeAll(async () => {
    space = await startChaos(round);
    replicas = new Replicas(space);
    history = await History.of(space);
    const { space: name } = space;
    const subjects = [`cotal.${name}.epf.>`];
    const config = { name: `EPF_${name}`, subjects, discard: "new", storage: "file", num_replicas: round.servers };
    await space.roots.space.request(`$JS.API.STREAM.CREATE.EPF_${name}`, JSON.stringify(config), { timeout: 5_000 });
    for (const { digest, text } of CONTRACT.artifacts) await space.put(artifactRows.key(digest), JSON.parse(text));
  });
  afterAll(async () => {
    killed += replicas.killed;
    await replicas.stop();
    await space.stop();
  });

  async function holder(): Promise<Replica> {
    if (!current?.alive) current = await replicas.serving(SLOT);
    await current.says("this replica runs retirements");
    return current;
  }

  async function plane(): Promise<Entry<Plane>> {
    const row = await space.store.read(planeRows.key({}));
    if (!row) throw new Error("no claim");
    return row;
  }

  /** Its holder's connection is gone, and the claim went over once for each death. */
  async function expectTaken({ value }: Entry<Plane>): Promise<void> {
    const now = (await plane()).value;
    expect(now).toMatchObject({ state: "held", generation: value.generation + 1 });
    expect(now.claimId).not.toBe(value.claimId);
    const client = await space.authClient();
    const tuples = { ledger: value.ledger, records: value.records };
    const { ledger, records, note } = await askConnectionLiveness(
      client,
      tuples,
      ownWork(systemPorts, 30_000),
      systemPorts,
    );
    expect([ledger.state, records.state], note).toEqual(["gone", "gone"]);
  }

  async function expectNothingWrong(): Promise<void> {
    expect(await violations(space.store)).toEqual([]);
    expect(wrongTransitions(await history.commits(), placeOf("auth", space.space).prefix)).toEqual([]);
  }

  /** The next holder ends them all; then nobody can do anything about them any more. */
  async function expectEnded(victims: readonly Victim[], before: Entry<Plane>): Promise<void> {
    await holder();
    await expectTaken(before);
    await Promise.all(victims.map((victim) => victim.finish()));
    const last = await space.store.lastSeq("auth");
    await Promise.all(victims.map((victim) => victim.again()));
    expect(await space.store.lastSeq("auth")).toBe(last);
    for (const victim of victims) await victim.check();
    for (const { what, late } of victims) {
      for (const messages of await late(before)) {
        const sent = space.store.commit(messages, ownWork(systemPorts, 10_000));
        await expect(sent, what).rejects.toBeInstanceOf(CommitLost);
      }
    }
    expect(await space.store.lastSeq("auth")).toBe(last);
    await expectNothingWrong();
  }

  const make = (of: readonly [Makes, Moment][]): Promise<Victim[]> =>
    Promise.all(of.map(([makes, step]) => makes(space, step)));

  /** Asks for everything of a replica that is to end so, until it has. */
  async function interrupt(victims: readonly Victim[], ends: Ends, killAfterMs?: number): Promise<Entry<Plane>> {
    const dying = await holder();
    const before = await plane();
    await dying.arm(ends);
    interrupted += victims.length;
    const asked = Promise.all(victims.map((victim) => victim.ask().catch(() => {})));
    if (ends.dies) await dying.died();
    else await Promise.race([dying.died(), asked, ...(killAfterMs === undefined ? [] : [delay(killAfterMs)])]);
    await dying.kill(); // by now, if the drawn moment never came
    return before;
  }

  it.each([0, 1])("dies after each step of each kind, and the next holder ends them (group %i)", async (at) => {
    const kinds = TOGETHER[at] ?? [];
    const victims = await make(
      kinds.flatMap(({ makes, steps }) => steps.map((step): [Makes, Moment] => [makes, step])),
    );
    const before = await interrupt(victims, { dies: victims.map(({ death }) => death) });
    await expectEnded(victims, before);
  });

  it("dies after each step of its own registration, and the next start takes up the same operation", async () => {
    const before = await interrupt([], {}, 0);
    for (const step of OWN) {
      interrupted += 1;
      await replicas.start(SLOT, { dies: [{ kind: "registration", step }] }).died();
      await expectNothingWrong();
    }
    await expectEnded([], before);
  });

  it.each(Array.from({ length: STRAYS }, (_, at) => at + 1))("dies at a moment of its own (%i)", async () => {
    const drawn = KINDS.map(({ makes, steps }): [Makes, Moment] => [
      makes,
      steps[chance.below(steps.length)] ?? "freeze",
    ]);
    const victims = await make(drawn);
    const inCommit = { diesInCommit: { nth: 1 + chance.below(40), afterMs: chance.below(4) } };
    const before =
      chance.below(2) === 0 ? await interrupt(victims, inCommit) : await interrupt(victims, {}, chance.below(1_500));
    await expectEnded(victims, before);
  });
});
