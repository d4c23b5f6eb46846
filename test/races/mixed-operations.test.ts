/** Two replicas of `auth` under everything at once: no answer is wrong, no credential without its row, no row lost. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { credentialIdOf } from "../../shared/canonical.ts";
import { runAttempt } from "../../shared/contracts/auth/runs/run-attempt.ts";
import { operationOfHttp } from "../../shared/contracts/http.ts";
import type { Operation } from "../../shared/contracts/operation.ts";
import { ROLES } from "../../shared/credentials/roles.ts";
import { isAuthorityError } from "../../shared/errors.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import { actorRows } from "../../shared/rows/actor.ts";
import { type EpCred, epCredRows } from "../../shared/rows/credential.ts";
import type { Entry } from "../../shared/rows/family.ts";
import { stageRows } from "../../shared/rows/stage.ts";
import { create, swap } from "../../shared/store/message.ts";
import { lostOn } from "../../shared/store/write.ts";
import { Actor } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import type { TestManager } from "../kit/manager.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { admittedRun } from "../services/auth/runs/runs.ts";
import { frozen, gateKeyOf, MANAGER, stored } from "../services/auth/scene.ts";
import { type Asked, attemptOf, dayOf, readerOf, renewal, standingRenewal } from "./mixed-requests.ts";

const gateway = { loopbackPort: 7_777, publicPort: 7_778, publicUrl: "https://authority.example" };
const PATIENT = { deadlineMs: 60_000 };
const MANAGERS = 10;

let space: TestSpace;
beforeAll(async () => {
  space = await startSpace({
    services: ["custodian", "auth", "exchange"],
    replicas: 2,
    authTimeoutS: 1,
    settings: { gateway },
  });
});
afterAll(() => space.stop());

let people = 0;
async function newManager(): Promise<TestManager> {
  people += 1;
  const granted = { scope: ["supervise", "run"], allowSubscribe: ["team.>"], allowPublish: ["team.>"] };
  const person = await space.person(`person-${people}`, granted);
  return space.manager(person, { upTo: "activate" });
}

interface Answer {
  /** The ids of the credentials that were released. */
  readonly ids: readonly string[];
  readonly code?: string;
}

async function answerTo(manager: TestManager, { operation, args }: Pick<Asked, "operation" | "args">): Promise<Answer> {
  try {
    const answer = await manager.client.call<Operation>(operation, args, PATIENT);
    const { credentials = {} } = answer as { credentials?: Record<string, { jwt: string }> };
    return { ids: Object.values(credentials).map(({ jwt }) => credentialIdOf(jwt)) };
  } catch (error) {
    if (!isAuthorityError(error)) throw error;
    return { ids: [], code: error.code };
  }
}

async function rowsOf(manager: TestManager): Promise<Map<string, Entry<EpCred>>> {
  const { entries, corrupt } = await space.store.scan(epCredRows, {
    endpoint: MANAGER,
    instanceId: manager.instanceId,
  });
  expect(corrupt).toEqual([]);
  return new Map(entries.map((entry) => [entry.value.credentialId, entry]));
}

const servedBy = (): number[] =>
  space.hosts.map(({ lines }) => lines.filter((line) => line.includes('"msg":"request"')).length);

describe("two replicas", () => {
  it("answer 200 mixed requests of ten managers at once, each rightly, and every credential has its row", async () => {
    const managers = await Promise.all(Array.from({ length: MANAGERS }, newManager));
    const days = await Promise.all(managers.map((manager) => dayOf(space, manager)));
    const before = await Promise.all(managers.map(rowsOf));
    const served = servedBy();

    const asked = days.flatMap((day, of) => day.map((one) => ({ one, manager: managers[of] as TestManager })));
    expect(asked).toHaveLength(200);
    const answers = await Promise.all(
      asked.map(async ({ one, manager }) => ({ one, manager, answer: await answerTo(manager, one) })),
    );

    const wrong = answers.filter(({ one, answer }) => answer.code !== one.refusal);
    expect(wrong.map(({ one, answer }) => `${one.operation.name}: ${answer.code ?? "success"}`)).toEqual([]);
    expect(answers.filter(({ one, answer }) => answer.ids.length !== one.credentials)).toEqual([]);
    const after = servedBy();
    expect(after.every((count, host) => count > (served[host] ?? 0))).toBe(true);

    for (const [of, manager] of managers.entries()) {
      const released = answers.filter((one) => one.manager === manager).flatMap(({ answer }) => answer.ids);
      expect(new Set(released).size).toBe(released.length);
      const rows = await rowsOf(manager);
      const fresh = [...rows.keys()].filter((id) => !before[of]?.has(id));
      expect(fresh.sort()).toEqual([...released].sort());
      const { generation } = await stored(space, gateKeyOf(manager));
      const states = released.map((id) => rows.get(id)?.value);
      expect(states.every((row) => row?.state === "active" && row.generation === generation)).toBe(true);
      for (const actor of ["agent_one", "agent_two"]) {
        const row = await stored(space, actorRows.key({ owner: manager.person.owner, actor: Actor.parse(actor) }));
        expect(row).toMatchObject({ state: "active", parent: `${manager.person.owner}.${manager.person.actor}` });
      }
    }
  });
});

describe("two attempts of one run at once", () => {
  it("never leave two pairs that both count", async () => {
    const manager = await newManager();
    const runs = await Promise.all(Array.from({ length: 8 }, () => admittedRun(space, manager)));
    const attempts = runs.flatMap((runId) => [attemptOf(manager, runId), attemptOf(manager, runId)]);
    const answers = await Promise.all(attempts.map((args) => answerTo(manager, { operation: runAttempt, args })));
    expect(answers.flatMap(({ code }) => code ?? [])).toEqual([]);
    const rows = [...(await rowsOf(manager)).values()].map(({ value }) => value);
    for (const runId of runs) {
      const active = rows.filter((row) => row.runId === runId && row.state === "active");
      expect([0, 2]).toContain(active.length);
    }
  });
});

describe("a gate that is frozen among issuances", () => {
  it("splits them exactly into those before, which have their rows, and those after, which have none", async () => {
    let before = 0;
    let after = 0;
    for (let round = 0; round < 6; round += 1) {
      const manager = await newManager();
      const runs = await Promise.all(Array.from({ length: 4 }, () => admittedRun(space, manager)));
      const known = await rowsOf(manager);
      const asking = [
        ...Array.from({ length: 8 }, () => renewal(manager)),
        ...Array.from({ length: 6 }, () => standingRenewal(manager)),
        ...Array.from({ length: 6 }, () => readerOf(manager)),
        ...runs.map((runId) => attemptOf(manager, runId)),
      ].map((args) => answerTo(manager, { operation: operationOfHttp(args), args }));
      await some(asking, 1 + 3 * round);
      const frozenAt = await freeze(manager);
      const answers = await Promise.all(asking);
      const rows = await rowsOf(manager);

      const released = answers.flatMap(({ ids }) => ids);
      const fresh = [...rows.values()].filter(({ value }) => !known.has(value.credentialId));
      expect(fresh.map(({ value }) => value.credentialId).sort()).toEqual([...released].sort());
      expect(fresh.every(({ revision }) => revision < frozenAt)).toBe(true);
      const refusals = answers.flatMap(({ code }) => code ?? []);
      expect(refusals.filter((code) => code !== "conflict" && code !== "failed-precondition")).toEqual([]);
      before += answers.length - refusals.length;
      after += refusals.length;
    }
    // Neither side always wins, or the race was none.
    expect(before).toBeGreaterThan(0);
    expect(after).toBeGreaterThan(0);
  });

  it("by a real registration leaves no credential of the serve family from before it", async () => {
    const manager = await newManager();
    const asking = Array.from({ length: 20 }, (_, n) => {
      const args = n % 2 === 0 ? standingRenewal(manager) : renewal(manager);
      return answerTo(manager, { operation: operationOfHttp(args), args });
    });
    const { generation } = await manager.register();
    const answers = await Promise.all(asking);
    const rows = await rowsOf(manager);
    for (const id of answers.flatMap(({ ids }) => ids)) {
      const row = rows.get(id)?.value;
      expect(row?.state).toBe(row && ROLES[row.role].serveFamily ? "revoked" : "active");
      expect(row?.generation).toBeLessThan(generation);
    }
    const stale = [...rows.values()].filter(
      ({ value }) => value.state === "active" && ROLES[value.role].serveFamily && value.generation < generation,
    );
    expect(stale).toEqual([]);
    const codes = new Set(answers.flatMap(({ code }) => code ?? []));
    for (const code of codes) expect(["conflict", "failed-precondition", "permission-denied"]).toContain(code);
  });
});

/** Resolves once that many have settled. */
function some(all: readonly Promise<unknown>[], count: number): Promise<void> {
  let settled = 0;
  return new Promise((resolve, reject) => {
    for (const one of all) {
      one.then(() => {
        settled += 1;
        if (settled === count) resolve();
      }, reject);
    }
  });
}

/** As a barrier freezes it, whatever moves meanwhile; gives the gate's revision. */
async function freeze(manager: TestManager): Promise<number> {
  const { op, ...state } = frozen();
  for (;;) {
    const gate = await space.store.read(gateKeyOf(manager));
    if (!gate) throw new Error("no gate");
    const opId = newUid(systemPorts);
    const stage = {
      v: 1 as const,
      opId,
      kind: op.kind,
      gate: gate.key.key,
      fromGeneration: gate.value.generation,
      principal: gate.value.principal,
      evicted: [],
      startedBy: "test",
      at: Date.now(),
      phase: "frozen" as const,
    };
    const messages = [
      swap(gate, { ...gate.value, ...state, op: { ...op, opId } }),
      create(stageRows.key({ opId }), stage),
    ];
    try {
      const [revision = 0] = await space.store.commit(messages, ownWork(systemPorts, 10_000));
      return revision;
    } catch (error) {
      if (!lostOn(error)) throw error;
    }
  }
}
