import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sha256Hex } from "../../../../shared/canonical.ts";
import { agentValidateRetained } from "../../../../shared/contracts/auth/agents/validate-retained.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { type Actor as ActorRow, actorRows } from "../../../../shared/rows/actor.ts";
import { headRows } from "../../../../shared/rows/head.ts";
import { ChannelPattern, Owner, type Principal, RoleName } from "../../../../shared/tokens.ts";
import { pauseRead } from "../../../kit/pause.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { activate, agentOf, scopes, TOKEN } from "../../exchange/ledger.ts";
import { refusesStrangers, refusesUnregistered } from "../manager-refusals.ts";
import { during, proven, provenEcho, type Scene, startScene, stored } from "../scene.ts";

type Args = Input<typeof agentValidateRetained>;

let scene: Scene;
let parent: ActorRow;
let agent: ActorRow;
let sentinelCreds: string;
beforeAll(async () => {
  scene = await startScene();
  const { space, person } = scene;
  // Not the manager's granter, so that its row is read for the parent chain alone.
  const lead = { actor: "lead", scope: ["run", "role:reviewer"], allowSubscribe: ["team.>"] };
  parent = await stored(space, actorRows.key(await space.person("alice", lead)));
  agent = await activate(space, person.owner, "coder", {
    row: agentOf(parent, {
      scope: scopes("run"),
      allowSubscribe: [ChannelPattern.parse("team.build")],
      role: RoleName.parse("reviewer"),
    }),
  });
  sentinelCreds = (await space.files.sentinel()).text;
});
afterAll(() => scene.space.stop());

const argsOf = (manager: Scene["manager"], change: Partial<Args> = {}): Args => {
  const { owner, actor, lifecycleUid } = agent;
  return {
    ...proven(manager, "manager-retained-agent-validation"),
    target: { owner, actor, lifecycleUid },
    actorToken: TOKEN,
    sentinelCreds,
    ...change,
  };
};
const validate = (change: Partial<Args> = {}) =>
  scene.manager.client.call(agentValidateRetained, argsOf(scene.manager, change), { once: true });
const refused = (code: ErrorCode, change: Partial<Args> = {}) => unchanged(scene.space, code, () => validate(change));

refusesStrangers(() => scene, agentValidateRetained, argsOf);
refusesUnregistered(() => scene, agentValidateRetained, argsOf);

describe("the validation of a retained agent", () => {
  it("says what the agent may do, on either road, and writes nothing", async () => {
    const { space, person, manager } = scene;
    const before = await sequences(space);
    const request = argsOf(manager);
    const answer = await manager.client.call(agentValidateRetained, request, { once: true });
    const { owner, actor, lifecycleUid, scope, allowSubscribe, allowPublish, role, parent: by } = agent;
    expect(answer).toEqual({
      ...provenEcho(manager, request),
      target: request.target,
      authority: { owner, actor, lifecycleUid, scope, allowSubscribe, allowPublish, role, parent: by },
    });
    expect(await person.ask(agentValidateRetained, request)).toEqual(answer);
    expect(await sequences(space)).toEqual(before);
  });

  it("wants a target of the owner's (check 2)", async () => {
    await refused("permission-denied", {
      target: { ...argsOf(scene.manager).target, owner: Owner.parse(`u_${"b".repeat(26)}`) },
    });
  });

  it("refuses another secret, sentinel, uid, kind, state or parent with one sentence (check 3)", async () => {
    const { space, person } = scene;
    const target = { owner: person.owner, actor: person.actor, lifecycleUid: person.uid };
    const sentences = new Set<string>();
    const denied = async (change: Partial<Args> = {}) =>
      sentences.add((await refused("permission-denied", change)).message);
    await denied({ sentinelCreds: `${sentinelCreds} ` });
    await denied({ sentinelCreds: sentinelCreds.replace("A", "B") });
    await denied({ actorToken: "another" });
    await denied({ actorToken: sha256Hex(TOKEN) });
    await denied({ target: { ...argsOf(scene.manager).target, lifecycleUid: newUid(systemPorts) } });
    await denied({ target });
    const key = actorRows.key(agent);
    await during(space, key, { state: "revoked" }, () => denied());
    await during(space, key, { parent: `${person.owner}.nobody` as Principal }, () => denied());
    await during(space, actorRows.key(parent), { scope: scopes("run") }, () => denied());
    await during(space, actorRows.key(parent), { allowSubscribe: [] }, () => denied());
    expect([...sentences]).toEqual(["the agent is not retained"]);
    await validate();
  });

  it("is a conflict where row or head moved while it was looked at (check 4)", async () => {
    const { space } = scene;
    const touched = [
      async () => space.put(actorRows.key(agent), await stored(space, actorRows.key(agent))),
      async () => space.put(headRows.key(agent), await stored(space, headRows.key(agent))),
    ];
    for (const touch of touched) {
      const pause = pauseRead(actorRows.key(parent).key);
      const late = validate().catch((error: { code: string }) => error.code);
      await pause.reached;
      await touch();
      pause.resume();
      expect(await late).toBe("conflict");
    }
  });
});
