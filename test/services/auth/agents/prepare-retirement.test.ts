import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Mailbox } from "../../../../services/auth/actors/mailbox.ts";
import { agentPrepareRetirement } from "../../../../shared/contracts/auth/agents/prepare-retirement.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import { interactiveRetireOpId, retireOpId } from "../../../../shared/credentials/roles.ts";
import { type ErrorCode, unavailable } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { type Actor as ActorRow, actorRows } from "../../../../shared/rows/actor.ts";
import { gateRows } from "../../../../shared/rows/gate.ts";
import { Actor, ChannelPattern, Owner, principalOf } from "../../../../shared/tokens.ts";
import { ownWork } from "../../../../shared/work.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { activate, agentOf } from "../../exchange/ledger.ts";
import { durables, makeMailboxes } from "../mailboxes.ts";
import { refusesStrangers, refusesUnregistered } from "../manager-refusals.ts";
import { proven, type Scene, startScene, stored } from "../scene.ts";

type Args = Input<typeof agentPrepareRetirement>;

let scene: Scene;
let parent: ActorRow;
beforeAll(async () => {
  scene = await startScene();
  await makeMailboxes(scene.space);
  parent = await stored(scene.space, actorRows.key(scene.person));
});
afterAll(() => scene.space.stop());

let agents = 0;
async function agent(more: Partial<ActorRow> = {}): Promise<ActorRow> {
  agents += 1;
  return activate(scene.space, scene.person.owner, `agent_${agents}`, { row: agentOf(parent, more) });
}
const targetOf = ({ owner, actor, lifecycleUid }: Pick<ActorRow, "owner" | "actor" | "lifecycleUid">) => ({
  target: { owner, actor, lifecycleUid },
  opId: retireOpId(lifecycleUid),
});
const nobody = () => ({
  owner: scene.person.owner,
  actor: Actor.parse("nobody"),
  lifecycleUid: newUid(systemPorts),
});
const argsOf = (manager: Scene["manager"], of = targetOf(nobody())): Args => ({
  ...proven(manager, "manager-managed-agent-prepare-retirement"),
  ...of,
});
const prepare = (of: ReturnType<typeof targetOf>) =>
  scene.manager.client.call(agentPrepareRetirement, argsOf(scene.manager, of), { once: true });
const refused = (code: ErrorCode, of: ReturnType<typeof targetOf>) => unchanged(scene.space, code, () => prepare(of));

refusesStrangers(() => scene, agentPrepareRetirement, argsOf);
refusesUnregistered(() => scene, agentPrepareRetirement, argsOf);

describe("preparing an agent's retirement", () => {
  it("revokes the row and leaves the lifecycle's gate open", async () => {
    const { space, person, manager } = scene;
    const row = await agent({ allowSubscribe: [ChannelPattern.parse("team.>")] });
    const request = argsOf(manager, targetOf(row));
    const answer = await manager.client.call(agentPrepareRetirement, request, { once: true });
    const { identities: _i, registrationProof: _p, serveEpoch: _e, ...echoed } = request;
    expect(answer).toEqual({ ...echoed, owner: person.owner, prepared: true });
    const { revokedAt, ...after } = await stored(space, actorRows.key(row));
    expect(after).toEqual({ ...row, state: "revoked", revokedBy: principalOf(person.owner, person.actor) });
    expect(Math.abs((revokedAt ?? 0) - Date.now())).toBeLessThan(10_000);
    expect((await stored(space, gateRows.key({ uid: row.lifecycleUid }))).state).toBe("open");
  });

  it("is the same through a gateway, and repeated writes nothing more", async () => {
    const { space, person, manager } = scene;
    const row = await agent();
    const request = argsOf(manager, targetOf(row));
    const first = await person.ask(agentPrepareRetirement, request);
    const before = await sequences(space);
    expect(await person.ask(agentPrepareRetirement, request)).toEqual(first);
    expect(await sequences(space)).toEqual(before);
  });

  it("wants the opId of this lifecycle before anything else", async () => {
    const row = await agent();
    for (const opId of [newUid(systemPorts), interactiveRetireOpId(row.lifecycleUid), row.lifecycleUid]) {
      await refused("bad-request", { ...targetOf(row), opId });
      const wrong = { ...argsOf(scene.manager, { ...targetOf(row), opId }), serveEpoch: 99 };
      await unchanged(scene.space, "bad-request", () =>
        scene.manager.client.call(agentPrepareRetirement, wrong, { once: true }),
      );
    }
  });

  it("refuses another owner's, an absent, a person's and a superseded one (checks 2 to 5)", async () => {
    const row = await agent();
    await refused("permission-denied", targetOf({ ...row, owner: Owner.parse(`u_${"b".repeat(26)}`) }));
    await refused("not-found", targetOf(nobody()));
    await refused("permission-denied", targetOf(parent));
    await refused("expired", targetOf({ ...row, lifecycleUid: newUid(systemPorts) }));
  });

  it("is decided again where the row moved meanwhile", async () => {
    const { space, person } = scene;
    const row = await agent();
    const pause = pauseCommit(`actor.${person.owner}.${row.actor}`);
    const prepared = prepare(targetOf(row));
    await pause.reached;
    await space.put(actorRows.key(row), { ...row, state: "revoked", revokedAt: 7 });
    pause.resume();
    expect((await prepared).prepared).toBe(true);
    expect((await stored(space, actorRows.key(row))).revokedAt).toBe(7);
  });

  it("removes the mailbox, and is unavailable while that fails, the row revoked all the same", async () => {
    const { space, person } = scene;
    const row = await agent();
    const { owner, actor, lifecycleUid: uid } = row;
    const connection = () => space.roots.space;
    const mailbox = new Mailbox({ space: space.space, connection, ports: systemPorts });
    await mailbox.open({ owner, actor, uid }, undefined, ownWork(systemPorts, 5_000));
    const tail = `${person.owner}-${actor}-${uid}`;
    expect(await durables(space, actor)).toEqual([`dlv_${tail}`, `dm_${tail}`]);

    const failing = vi.spyOn(Mailbox.prototype, "remove").mockRejectedValueOnce(unavailable("no consumer was removed"));
    const error = await prepare(targetOf(row)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "unavailable", outcome: "unknown" });
    failing.mockRestore();
    expect((await stored(space, actorRows.key(row))).state).toBe("revoked");
    expect(await durables(space, actor)).toHaveLength(2);

    await prepare(targetOf(row));
    expect(await durables(space, actor)).toEqual([]);
  });
});
