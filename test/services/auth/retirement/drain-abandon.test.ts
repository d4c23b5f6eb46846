import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { agentRetire } from "../../../../shared/contracts/auth/retirement/agent-retire.ts";
import { drainAbandon } from "../../../../shared/contracts/auth/retirement/drain-abandon.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { gateRows } from "../../../../shared/rows/gate.ts";
import { type Obligation, obligationRows } from "../../../../shared/rows/mesh/obligation.ts";
import { stageRows } from "../../../../shared/rows/stage.ts";
import { subjectOf } from "../../../../shared/store/streams.ts";
import { Actor, Digest, EnvelopeId } from "../../../../shared/tokens.ts";
import type { Host } from "../../../kit/hosting.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { freshOwner, type Lifecycle, lifecycle, named, requestId, rowsOf } from "../lifecycles.ts";
import { during, MANAGER, provisioned } from "../scene.ts";

let space: TestSpace;
let custodian: Host;
/** Waits, contained, for the obligation. */
let agent: Lifecycle;
let key: ReturnType<typeof obligationRows.key>;
const OBLIGATION: Obligation = {
  state: "accepted",
  opId: "goal-1",
  decision: "epf",
  fingerprint: Digest.parse(`sha256:${"f".repeat(64)}`),
  sourceSeq: 7,
  route: "effects",
  mappingRevision: 1,
};

beforeAll(async () => {
  space = await startSpace({ services: ["auth"], authTimeoutS: 1 });
  custodian = await space.host(["custodian"]);
});
afterAll(() => space.stop());

async function blocked(body: string = JSON.stringify(OBLIGATION)): Promise<number> {
  agent = await lifecycle(space);
  key = obligationRows.key({
    target: agent.uid,
    endpoint: MANAGER,
    owner: freshOwner(),
    actor: Actor.parse("cli"),
    uid: newUid(systemPorts),
    id: EnvelopeId.parse("goal-1"),
  });
  const revision = await write(body);
  const unconfirmed = space.operator.call(agentRetire, named(agent), { deadlineMs: 600, once: true });
  await expect(unconfirmed).rejects.toMatchObject({ code: "unavailable" });
  await vi.waitFor(async () => expect((await rowsOf(space, agent)).stage?.phase).toBe("contained"), {
    timeout: 10_000,
  });
  return revision;
}

async function write(body: string): Promise<number> {
  const subject = subjectOf("records", space.space, key.key);
  const ack = await space.roots.space.request(subject, body, { timeout: 5_000 });
  return ack.json<{ seq: number }>().seq;
}

const abandon = (revision: number, more: object = {}) =>
  space.operator.call(
    drainAbandon,
    { requestId: requestId(), opId: agent.opId, key: key.key, revision, ...more },
    { once: true },
  );

it("ends an obligation at the revision that was looked at, so that the retirement finishes", async () => {
  const revision = await blocked();
  const answer = {
    requestId: expect.any(String),
    opId: agent.opId,
    key: key.key,
    state: "terminal",
    outcome: "abandoned",
  };
  expect(await abandon(revision)).toEqual(answer);
  expect((await space.store.read(key))?.value).toEqual({ ...OBLIGATION, state: "terminal", outcome: "abandoned" });
  const was = createHash("sha256").update(JSON.stringify(OBLIGATION)).digest("hex");
  const line = space.hosts.flatMap(({ lines }) => lines).find((text) => text.includes('"op":"drain-abandon"'));
  expect(JSON.parse(line ?? "{}")).toMatchObject({ key: key.key, was: `sha256:${was}` });
  const before = await space.store.lastSeq("records");
  expect(await abandon(revision)).toEqual(answer);
  expect(await space.store.lastSeq("records")).toBe(before);
  expect(await space.operator.call(agentRetire, named(agent))).toMatchObject({ retired: true });
});

it("ends a garbled one, whose identity stands in the key", async () => {
  const revision = await blocked("{");
  await abandon(revision);
  expect((await space.store.read(key))?.value).toEqual({ state: "terminal", outcome: "abandoned", opId: agent.opId });
  expect(await space.operator.call(agentRetire, named(agent))).toMatchObject({ retired: true });
});

describe("is refused, with nothing written,", () => {
  let revision: number;
  beforeAll(async () => {
    revision = await blocked();
    await custodian.stop(); // tries that go on in the background write nothing now
  });
  beforeEach(async () => {
    revision = await write(JSON.stringify(OBLIGATION));
  });
  const refused = (code: ErrorCode, at = revision, more: object = {}) =>
    unchanged(space, code, () => abandon(at, more));

  it("for an operation that does not exist (check 1)", async () => {
    await refused("not-found", revision, { opId: newUid(systemPorts) });
  });

  it("for what is no contained retirement of this lifecycle (check 2)", async () => {
    const stage = stageRows.key({ opId: agent.opId });
    for (const phase of ["frozen", "finished", "aborted"] as const) {
      await during(space, stage, { phase }, () => refused("failed-precondition"));
    }
    await during(space, gateRows.key(agent), { state: "retired" }, () => refused("failed-precondition"));
    await during(space, stage, { kind: "registration" }, () => refused("failed-precondition"));
    await during(space, stage, { gate: `gate.${newUid(systemPorts)}` }, () => refused("failed-precondition"));
    const op = { opId: newUid(systemPorts), kind: "retirement" as const };
    await during(space, gateRows.key(agent), { op }, () => refused("failed-precondition"));
    const other = key.key.replace(agent.uid, newUid(systemPorts));
    await refused("failed-precondition", revision, { key: other });
  });

  it("for a row that does not exist (check 3)", async () => {
    await refused("not-found", revision, { key: `${key.key}x` });
  });

  it("at another revision (check 4)", async () => {
    await refused("conflict", revision + 1);
    await refused("conflict", revision - 1);
  });

  it.each(["rejected", "terminal"] as const)("for a row that is %s already (check 5)", async (state) => {
    const settled = await write(JSON.stringify({ ...OBLIGATION, state }));
    await refused("failed-precondition", settled);
  });

  it("for a key that is no obligation's under a uid", async () => {
    for (const wrong of ["oblig.ep.manager.x", "gate.x", `oblig.${agent.uid}`, `oblig.${agent.uid}.>`]) {
      await refused("bad-request", revision, { key: wrong });
    }
  });

  it("to anybody but the operator", async () => {
    const args = { requestId: requestId(), opId: agent.opId, key: key.key, revision };
    for (const caller of [agent, await provisioned(space, "platform_host")]) {
      await unchanged(space, "permission-denied", () =>
        space.clientAs(caller).call(drainAbandon, args, { once: true }),
      );
    }
  });
});
