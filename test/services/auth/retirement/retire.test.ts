import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { startAuth } from "../../../../services/auth/start.ts";
import { actorRevoke } from "../../../../shared/contracts/auth/actors/actor-revoke.ts";
import { agentRetire } from "../../../../shared/contracts/auth/retirement/agent-retire.ts";
import { AuthorityError } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { actorRows } from "../../../../shared/rows/actor.ts";
import { gateRows } from "../../../../shared/rows/gate.ts";
import { headRows } from "../../../../shared/rows/head.ts";
import { obligationRows } from "../../../../shared/rows/mesh/obligation.ts";
import { stageRows } from "../../../../shared/rows/stage.ts";
import { subjectOf } from "../../../../shared/store/streams.ts";
import { Digest, EnvelopeId, principalOf } from "../../../../shared/tokens.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { credentialStates, freshOwner, type Lifecycle, lifecycle, named, rowsOf, stageOf } from "../lifecycles.ts";
import { MANAGER } from "../scene.ts";

/** How an operator's door refuses what was asked once. */
const refusal = (work: Promise<unknown>): Promise<AuthorityError> =>
  work.then(
    () => expect.unreachable(),
    (error: unknown) => (error instanceof AuthorityError ? error : expect.unreachable()),
  );

describe("with a custodian and two replicas", () => {
  let space: TestSpace;
  beforeAll(async () => {
    space = await startSpace({ services: ["auth"], replicas: 2, authTimeoutS: 1 });
    await space.host(["custodian"]);
  });
  afterAll(() => space.stop());

  const retire = (of: Lifecycle, deadlineMs?: number) =>
    space.operator.call(agentRetire, named(of), { once: true, ...(deadlineMs === undefined ? {} : { deadlineMs }) });

  it("ends gate, head and stage in one commit, with the frontier of each stream there is", async () => {
    const agent = await lifecycle(space);
    expect(await retire(agent)).toEqual({ retired: true, lifecycleUid: agent.uid });
    const { owner, actor, uid, opId } = agent;
    const [gate, head, stage] = await Promise.all([
      space.store.read(gateRows.key({ uid })),
      space.store.read(headRows.key({ owner, actor })),
      space.store.read(stageRows.key({ opId })),
    ]);
    const { frontier } = await rowsOf(space, agent);
    expect(gate?.value).toEqual({
      lifecycleUid: uid,
      state: "retired",
      generation: 1,
      op: { opId, kind: "retirement" },
    });
    expect(head?.value).toMatchObject({ state: "retired", lifecycleUid: uid });
    expect(head?.value).not.toHaveProperty("op");
    expect(stage?.value).toMatchObject({
      phase: "finished",
      evicted: [principalOf(owner, actor)],
      gate: `gate.${uid}`,
    });
    expect(frontier?.value).toEqual({
      lifecycleUid: uid,
      opId,
      streams: { KV_cotal_records_demo: expect.any(Number) },
    });
    const revisions = [stage, frontier, gate, head].map((row) => row?.revision ?? 0);
    expect(revisions).toEqual([0, 1, 2, 3].map((at) => at + (revisions[0] ?? 0)));
    expect(await credentialStates(space, agent)).toEqual(["revoked"]);
  });

  it("is confirmed by whichever replica is asked, and run once however often it is asked for", async () => {
    const agent = await lifecycle(space);
    // Which replica gets one is the broker's draw.
    const answers = await Promise.all(Array.from({ length: 16 }, () => retire(agent)));
    expect(answers.every(({ retired }) => retired)).toBe(true);
    const told = space.hosts.flatMap(({ lines }) => lines).filter((line) => line.includes('"msg":"retired"'));
    expect(told.filter((line) => line.includes(agent.opId))).toHaveLength(1);
    const asked = space.hosts.map(({ lines }) =>
      lines.some((line) => line.includes('"op":"agent-retire"') && line.includes(agent.opId)),
    );
    expect(asked).toEqual([true, true]);
  });

  it("runs many lifecycles side by side", async () => {
    const agents = await Promise.all(Array.from({ length: 12 }, () => lifecycle(space)));
    await Promise.all(agents.map((agent) => retire(agent)));
    for (const agent of agents) expect((await rowsOf(space, agent)).head?.state).toBe("retired");
  });

  it("is a repeat's answer once it is done, and writes nothing more", async () => {
    const agent = await lifecycle(space);
    await retire(agent);
    const before = await space.store.lastSeq("auth");
    expect(await retire(agent)).toEqual({ retired: true, lifecycleUid: agent.uid, alreadyRetired: true });
    expect(await space.store.lastSeq("auth")).toBe(before);
  });

  it("waits for obligations, names them, and finishes once they are settled", async () => {
    const agent = await lifecycle(space);
    const key = obligationRows.key({
      target: agent.uid,
      endpoint: MANAGER,
      owner: freshOwner(),
      actor: agent.actor,
      uid: agent.uid,
      id: EnvelopeId.parse("goal-1"),
    });
    const obligation = {
      opId: "goal-1",
      decision: "epf" as const,
      fingerprint: Digest.parse(`sha256:${"f".repeat(64)}`),
      sourceSeq: 7,
      route: "effects" as const,
      mappingRevision: 1,
    };
    await space.put(key, { ...obligation, state: "accepted" });
    const error = await refusal(retire(agent, 3_000));
    expect(error).toMatchObject({ code: "unavailable", outcome: "unknown" });
    expect(error.details).toContainEqual({
      kind: "ai.cotal.auth.drain-blocked",
      opId: agent.opId,
      rows: [{ key: key.key, state: "accepted", route: "effects" }],
      more: 0,
    });
    expect((await rowsOf(space, agent)).stage?.phase).toBe("contained");
    await space.put(key, { ...obligation, state: "terminal" });
    // Whoever does not hold the claim waits for the holder's next look, every 30 s.
    expect(await retire(agent, 45_000)).toMatchObject({ retired: true });
  }, 60_000);

  describe("refuses, and leaves everything as it is,", () => {
    const frozenBy = (opId: Lifecycle["opId"], kind: "retirement" | "takeover" | "registration") => ({
      state: "frozen" as const,
      op: { opId, kind },
    });

    it("while another retirement holds the gate", async () => {
      const opId = newUid(systemPorts);
      const agent = await lifecycle(space, { gate: frozenBy(opId, "retirement") });
      const error = await unchanged(space, "conflict", () => retire(agent));
      expect(error.details).toEqual([{ kind: "ai.cotal.auth.op-held", opId, opKind: "retirement" }]);
    });

    it("a lifecycle that another operation ended", async () => {
      const opId = newUid(systemPorts);
      const agent = await lifecycle(space, { gate: { state: "retired", op: { opId, kind: "retirement" } } });
      await unchanged(space, "conflict", () => retire(agent));
    });

    it("while a takeover holds the gate, which no version of this one starts", async () => {
      const agent = await lifecycle(space, { gate: frozenBy(newUid(systemPorts), "takeover") });
      await unchanged(space, "failed-precondition", () => retire(agent));
    });

    it("an operation id that is another lifecycle's", async () => {
      const agent = await lifecycle(space);
      await space.put(stageRows.key({ opId: agent.opId }), { ...stageOf(agent), gate: `gate.${newUid(systemPorts)}` });
      await unchanged(space, "conflict", () => retire(agent));
    });

    it.each<[string, (of: Lifecycle) => Promise<unknown>]>([
      [
        "an open gate whose head is retiring",
        ({ owner, actor, uid, opId }) =>
          change(headRows.key({ owner, actor }), {
            state: "retiring",
            op: { opId, kind: "retirement" },
            lifecycleUid: uid,
          }),
      ],
      [
        "a retired gate whose head is retiring",
        async ({ owner, actor, uid, opId }) => {
          await change(headRows.key({ owner, actor }), { state: "retiring", op: { opId, kind: "retirement" } });
          await change(gateRows.key({ uid }), { state: "retired", op: { opId, kind: "retirement" } });
        },
      ],
      [
        "a frozen gate whose head is active",
        ({ uid, opId }) => change(gateRows.key({ uid }), frozenBy(opId, "retirement")),
      ],
      [
        "a frozen gate without a stage",
        async ({ owner, actor, uid, opId }) => {
          await change(headRows.key({ owner, actor }), { state: "retiring", op: { opId, kind: "retirement" } });
          await change(gateRows.key({ uid }), frozenBy(opId, "retirement"));
        },
      ],
      ["a garbled gate", ({ uid }) => garble(gateRows.key({ uid }).key)],
    ])("%s", async (_name, make) => {
      const agent = await lifecycle(space);
      await make(agent);
      await unchanged(space, "internal", () => retire(agent));
    });

    it("a lifecycle without a gate", async () => {
      const owner = freshOwner();
      const agent = await lifecycle(space, { owner });
      const uid = newUid(systemPorts);
      const head = (await rowsOf(space, agent)).head;
      const row = (await rowsOf(space, agent)).actor;
      if (!head || !row) return expect.unreachable();
      await space.put(headRows.key({ owner, actor: agent.actor }), { ...head, lifecycleUid: uid });
      await space.put(actorRows.key({ owner, actor: agent.actor }), { ...row, lifecycleUid: uid });
      await unchanged(space, "not-found", () => space.operator.call(agentRetire, named({ ...agent, uid })));
    });
  });

  async function change<V extends object>(key: Parameters<typeof space.store.read<V>>[0], to: Partial<V>) {
    const row = await space.store.read(key);
    if (!row) throw new Error(`no ${key.key}`);
    await space.put(key, { ...row.value, ...to });
  }
  async function garble(key: string): Promise<void> {
    await space.roots.authority.request(subjectOf("auth", space.space, key), "{", { timeout: 5_000 });
  }
});

describe("without a custodian", () => {
  let space: TestSpace;
  beforeAll(async () => {
    space = await startSpace({ services: ["auth"], authTimeoutS: 1 });
  });
  afterAll(() => space.stop());

  it("denies at once, says that it is not confirmed, and is finished later under the same operation", async () => {
    const person = await lifecycle(space, { kind: "interactive" });
    const error = await refusal(space.operator.call(actorRevoke, named(person), { deadlineMs: 1_000 }));
    expect(error).toMatchObject({ code: "unavailable", outcome: "unknown", details: [] });
    const rows = await rowsOf(space, person);
    expect(rows).toMatchObject({
      actor: { state: "revoked", revokedBy: "local.operator" },
      head: { state: "retiring", op: { opId: person.opId, kind: "retirement" } },
      gate: { state: "frozen", op: { opId: person.opId, kind: "retirement" } },
      stage: { phase: "frozen", kind: "retirement", fromGeneration: 1, evicted: [] },
    });
    expect(rows.stage?.startedBy).toMatch(/^[a-z0-9]{26,32}$/);
    expect(await credentialStates(space, person)).toEqual(["revoked"]);
    const custodian = await space.host(["custodian"]);
    const answer = await space.operator.call(actorRevoke, named(person));
    expect(answer).toMatchObject({ opId: person.opId, retired: true });
    expect(answer.evictedPrincipals).toEqual([principalOf(person.owner, person.actor)]);
    await custodian.stop();
  });

  it("the holder resumes by itself what another process began", async () => {
    const person = await lifecycle(space, { kind: "interactive" });
    const { opId, uid, owner, actor } = person;
    await space.host(["custodian"]);
    const head = (await rowsOf(space, person)).head;
    if (!head) return expect.unreachable();
    await space.put(stageRows.key({ opId }), stageOf(person));
    await space.put(headRows.key({ owner, actor }), { ...head, state: "retiring", op: { opId, kind: "retirement" } });
    await space.put(gateRows.key({ uid }), {
      lifecycleUid: uid,
      state: "frozen",
      generation: 1,
      op: { opId, kind: "retirement" },
    });
    await vi.waitFor(async () => expect((await rowsOf(space, person)).head?.state).toBe("retired"), {
      timeout: 10_000,
    });
  });
});

describe("while nobody holds the claim", () => {
  let space: TestSpace;
  afterEach(() => space.stop());

  it("is `internal` where the row is corrupt", async () => {
    space = await startSpace({});
    await space.roots.authority.request(subjectOf("auth", space.space, "plane"), "{", { timeout: 5_000 });
    const deps = await space.deps("auth");
    const auth = await startAuth(deps);
    const agent = await lifecycle(space);
    const error = await refusal(space.operator.call(agentRetire, named(agent), { deadlineMs: 1_000 }));
    expect(error.code).toBe("internal");
    expect((await rowsOf(space, agent)).gate?.state).toBe("frozen");
    await auth.close();
  });
});
