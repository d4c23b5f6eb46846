/** The process that holds the plane claim dies after each step of a retirement; the next holder finishes it. */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { Moment } from "../../services/auth/barrier/kinds.ts";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { newUid, systemPorts } from "../../shared/ports.ts";
import { obligationRows } from "../../shared/rows/mesh/obligation.ts";
import { stageRows } from "../../shared/rows/stage.ts";
import { Actor, Digest, EnvelopeId, Owner, type Uid } from "../../shared/tokens.ts";
import type { TestSpace } from "../kit/space.ts";
import { instance } from "../services/auth/assignments/instances.ts";
import { credentialStates, type Lifecycle, lifecycle, named, rowsOf } from "../services/auth/lifecycles.ts";
import { gateKeyOf, MANAGER, stored } from "../services/auth/scene.ts";
import { violations } from "./invariants.ts";
import { Replica } from "./replica.ts";
import { PATIENCE, ROUNDS, startChaos } from "./space.ts";

/** As many as the holder runs at once. */
const MOMENTS: readonly Moment[] = ["freeze", "touch", "revoke", "contain", "evict", "drain", "frontier", "finish"];
/** What the callout may still admit need not be waited for. */
const LOCAL = Owner.parse("local");

let space: TestSpace;
const replicas: Replica[] = [];
beforeAll(async () => {
  space = await startChaos();
  const { space: name } = space;
  const config = { name: `EPF_${name}`, subjects: [`cotal.${name}.epf.>`], discard: "new", storage: "file" };
  await space.roots.space.request(`$JS.API.STREAM.CREATE.EPF_${name}`, JSON.stringify(config), { timeout: 5_000 });
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.kill()));
  await space.stop();
});

interface Victim extends Lifecycle {
  readonly step: Moment;
  readonly instanceId: Uid;
}

/** A person behind a manager, with a request that nobody has decided yet. */
async function victim(step: Moment): Promise<Victim> {
  const person = await lifecycle(space, { owner: LOCAL, kind: "interactive" });
  const { owner, actor, uid } = person;
  const grantedBy = { kind: "actor" as const, owner, actor, lifecycleUid: uid };
  const { instanceId } = await instance(space, owner, {}, grantedBy);
  const asked = { endpoint: MANAGER, owner, actor: Actor.parse("cli"), uid: newUid(systemPorts) };
  await space.put(obligationRows.key({ target: uid, ...asked, id: EnvelopeId.parse("request-1") }), {
    state: "provisional",
    opId: "request-1",
    decision: "epf",
    fingerprint: Digest.parse(`sha256:${"f".repeat(64)}`),
    sourceSeq: 1,
    route: "effects",
    mappingRevision: 1,
  });
  return { ...person, step, instanceId };
}

const ask = (of: Lifecycle) => space.operator.call(actorRevoke, named(of), { deadlineMs: 30_000, once: true });

async function serving(slot: string, dies: readonly Victim[] = []): Promise<Replica> {
  const kind = "retirement" as const;
  const replica = await Replica.serving(space, slot, { dies: dies.map(({ step, opId }) => ({ kind, step, opId })) });
  replicas.push(replica);
  return replica;
}

async function expectRetired(of: Victim): Promise<void> {
  await vi.waitFor(async () => expect((await rowsOf(space, of)).head?.state, of.step).toBe("retired"), PATIENCE);
  const before = await space.store.lastSeq("auth");
  expect(await ask(of)).toMatchObject({ opId: of.opId, retired: true });
  expect(await space.store.lastSeq("auth")).toBe(before);
  expect(await stored(space, stageRows.key({ opId: of.opId }))).toMatchObject({ phase: "finished" });
  expect(await credentialStates(space, { uid: of.uid })).toEqual(["revoked"]);
  expect(await credentialStates(space, { instanceId: of.instanceId })).toEqual(["revoked", "revoked", "revoked"]);
  expect(await stored(space, gateKeyOf(of))).toMatchObject({ state: "open", generation: 1 });
}

it("is finished by the next holder under the same operation, nothing of it twice", { timeout: 600_000 }, async () => {
  for (let round = 1; round <= ROUNDS; round += 1) {
    const victims = await Promise.all(MOMENTS.map(victim));
    const holder = await serving("1", victims);
    await holder.says("this replica runs retirements");
    const asked = victims.map((of) => ask(of).catch(() => {}));
    await holder.died();

    const next = await serving("2");
    for (const of of victims) await expectRetired(of);
    // One rejection for each undecided request, whoever published it.
    expect(await space.store.lastSeq("facts")).toBe(round * MOMENTS.length);
    expect(await violations(space.store)).toEqual([]);
    await next.stop();
    void asked;
  }
});
