import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { managerRenewRun } from "../../../../shared/contracts/auth/manager/renew-run.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import { runHolder } from "../../../../shared/credentials/roles.ts";
import { AuthorityError, type ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { revocationRows } from "../../../../shared/rows/admission.ts";
import { epCredRows } from "../../../../shared/rows/credential.ts";
import type { Key } from "../../../../shared/rows/family.ts";
import { runStatusRows } from "../../../../shared/rows/mesh/run.ts";
import { type TakeoverId, UserNkey } from "../../../../shared/tokens.ts";
import { freshRunId, freshTakeoverId, type TestManager } from "../../../kit/manager.ts";
import { pauseCommit, pauseRead } from "../../../kit/pause.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { asks, hears, writes } from "../hear.ts";
import { expectRow, itIssues, rowOf } from "../issuing.ts";
import { admittedRun, createJournals, type Held, heldBy, markRevoked, writeStatus } from "../runs/runs.ts";
import { MANAGER } from "../scene.ts";

type Args = Input<typeof managerRenewRun>;

let space: TestSpace;
let manager: TestManager;
/** The run that a manager's common requests are about. */
const heldRuns = new WeakMap<TestManager, Held>();

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange"] });
  manager = await space.manager(await space.person("alice", { scope: ["supervise"], allowPublish: ["team"] }));
  await createJournals(space);
  await before(manager);
});
afterAll(() => space.stop());

/** A run that is admitted and running in that manager's hands. */
async function heldRun(of: TestManager): Promise<Held> {
  const held = heldBy(of, await admittedRun(space, of));
  await writeStatus(space, held);
  return held;
}

async function before(of: TestManager): Promise<void> {
  heldRuns.set(of, await heldRun(of));
}

const driver = createKeyPair("user");
const mediator = createKeyPair("user");
const args = (of: TestManager, held = heldRuns.get(of) ?? heldBy(of, freshRunId())): Args => ({
  ...of.proven(),
  kind: "manager-service-authority",
  operation: "renewRunDriver",
  run: { ...held, driverId: UserNkey.parse(driver.public), mediatorId: UserNkey.parse(mediator.public) },
});
const renew = (request: Args) => manager.client.call(managerRenewRun, request, { once: true });
const refused = (code: ErrorCode, held: Held, change: Partial<Args["run"]> = {}) => {
  const request = args(manager, held);
  return unchanged(space, code, () => renew({ ...request, run: { ...request.run, ...change } }));
};

itIssues({
  operation: managerRenewRun,
  proof: "K",
  scene: () => ({ space, manager, person: manager.person }),
  before,
  args,
});

describe("a run that is renewed", () => {
  it("was admitted on this instance", async () => {
    const [held, sibling] = [heldBy(manager, freshRunId()), await space.manager(manager.person, { upTo: "none" })];
    await writeStatus(space, held);
    await refused("permission-denied", held);
    await admittedRun(space, sibling, held.runId);
    await refused("permission-denied", held);
  });

  it("was not revoked", async () => {
    const held = await heldRun(manager);
    await markRevoked(space, held.runId);
    await refused("permission-denied", held);
  });

  it("is running", async () => {
    const held = heldBy(manager, await admittedRun(space, manager));
    await refused("conflict", held);
    for (const state of ["released", "completed", "failed"] as const) {
      await writeStatus(space, held, { state });
      await refused("conflict", held);
    }
  });

  it("is in the hands of this supervisor, under this takeover and attempt", async () => {
    const held = await heldRun(manager);
    const [supervisor, takeoverId] = [createKeyPair("user").public, freshTakeoverId()];
    const { holder } = held;
    await refused("conflict", held, { holder: `${supervisor}.${held.takeoverId}` });
    await refused("conflict", held, { holder: holder.replace(held.takeoverId, takeoverId) });
    await refused("conflict", held, { holder: holder.replace(held.takeoverId, takeoverId), takeoverId });
    await refused("conflict", held, { takeoverId });
    await refused("conflict", held, { holder: held.takeoverId });
    await refused("conflict", held, { epoch: held.epoch + 1 });
    await refused("conflict", held, { fencingToken: held.fencingToken + 1 });
    const another = { holder: `${supervisor}.${held.takeoverId}` };
    await writeStatus(space, held, another);
    await refused("conflict", held);
    await refused("conflict", held, another);
  });

  it("is no longer the former holder's once a new attempt took it", async () => {
    const held = await heldRun(manager);
    await renew(args(manager, held));
    const next = { ...heldBy(manager, held.runId), epoch: 2, fencingToken: 2 };
    await writeStatus(space, next);
    await refused("conflict", held);
    await renew(args(manager, next));
  });
});

describe("before the last look", () => {
  /** Stops at a read that is the last of its row before the commit. */
  async function meanwhile(
    held: Held,
    at: Key<unknown>,
    what: () => Promise<unknown>,
  ): Promise<() => Promise<unknown>> {
    const pause = pauseRead(at.key);
    const answer = manager.person.ask(managerRenewRun, args(manager, held));
    answer.catch(() => {});
    await pause.reached;
    await what();
    return () => {
      pause.resume();
      return answer;
    };
  }

  it("a run may be revoked", async () => {
    const held = await heldRun(manager);
    const marker = revocationRows.key({ endpoint: MANAGER, runId: held.runId });
    const goOn = await meanwhile(held, marker, () => markRevoked(space, held.runId));
    await unchanged(space, "permission-denied", goOn);
  });

  it("a run may end, or be taken", async () => {
    for (const change of [{ state: "released" as const }, { fencingToken: 2 }]) {
      const held = await heldRun(manager);
      const status = runStatusRows.key({ endpoint: MANAGER, runId: held.runId });
      const goOn = await meanwhile(held, status, () => writeStatus(space, held, change));
      await unchanged(space, "conflict", goOn);
    }
  });
});

it("releases nothing of a run that was revoked between commit and release, and revokes the rows", async () => {
  const held = await heldRun(manager);
  const pause = pauseCommit(`epcred.manager.${manager.instanceId}.`, "after");
  const answer = renew(args(manager, held));
  answer.catch(() => {});
  await pause.reached;
  await markRevoked(space, held.runId);
  pause.resume();
  const refusal = await answer.catch((error: unknown) => error);
  expect(refusal instanceof AuthorityError && [refusal.code, refusal.outcome]).toEqual([
    "permission-denied",
    "unknown",
  ]);
  const { entries } = await space.store.scan(epCredRows, { endpoint: MANAGER, instanceId: manager.instanceId });
  const states = entries.filter(({ value }) => value.runId === held.runId).map(({ value }) => value.state);
  expect(states).toEqual(["revoked", "revoked"]);
});

describe("what is issued", () => {
  it("is driver and mediator under the nkeys of the attempt, on rows of the run", async () => {
    const held = await heldRun(manager);
    const request = args(manager, held);
    const seq = await space.store.lastSeq("auth");
    const answer = await renew(request);
    expect(await space.store.lastSeq("auth")).toBe((seq ?? 0) + 2);
    const { registrationProof, accountPublicKey, processEpoch, run } = request;
    expect(answer).toMatchObject({ registrationProof, accountPublicKey, processEpoch, run, lifecycleUid: manager.uid });
    const { runDriver, runMediator } = answer.credentials;
    expect(runDriver.exp - Math.floor(answer.issuedAt / 1_000)).toBe(900);
    const row = { runId: held.runId, lifecycleUid: runHolder(held.runId).uid };
    await expectRow(space, manager, "runDriver", runDriver, { ...row, credentialKey: run.driverId });
    await expectRow(space, manager, "runMediator", runMediator, { ...row, credentialKey: run.mediatorId });
  });

  it("lets the driver append and the mediator ask, chat and settle", async () => {
    const held = await heldRun(manager);
    const { runDriver, runMediator } = (await renew(args(manager, held))).credentials;
    const driving = await manager.connectAs(runDriver.jwt, driver);
    await writes(driving, `cotal.demo.wfj.${held.runId}`, {});
    await expect(writes(driving, `cotal.demo.wfj.${freshRunId()}`, {})).rejects.toThrow();
    const mediating = await manager.connectAs(runMediator.jwt, mediator);
    await writes(mediating, `$KV.cotal_records_demo.cp.manager.${newUid(systemPorts)}.spec`, {});
    const consumer = `wfm_${held.runId}_${held.takeoverId as TakeoverId}`;
    const subject = `cotal.demo.wfj.${held.runId}`;
    await asks(mediating, `CONSUMER.CREATE.WFJ_demo.${consumer}.${subject}`, {
      stream_name: "WFJ_demo",
      config: { name: consumer, filter_subject: subject, ack_policy: "explicit", mem_storage: true },
    });
    const { owner, actor } = manager.person;
    await hears(space.roots.space, mediating, `cotal.demo.chat.${owner}.${actor}.team`);
  });

  it("is issued anew at each repeat, beside what was issued before", async () => {
    const request = args(manager, await heldRun(manager));
    for (const _ of [1, 2]) {
      const { runDriver } = (await renew(request)).credentials;
      expect((await rowOf(space, manager, runDriver.jwt))?.value.state).toBe("active");
    }
  });
});
