import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { managerAuthorizeAdmin } from "../../../../shared/contracts/auth/agents/authorize-admin.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { actorRows } from "../../../../shared/rows/actor.ts";
import { Actor, Scope } from "../../../../shared/tokens.ts";
import type { Person } from "../../../kit/person.ts";
import { sequences } from "../../../kit/unchanged.ts";
import { refusesStrangers, refusesUnregistered } from "../manager-refusals.ts";
import { during, proven, provenEcho, type Scene, startScene } from "../scene.ts";

let scene: Scene;
let admin: Person;
beforeAll(async () => {
  scene = await startScene();
  admin = await scene.space.person("alice", { actor: "boss", scope: ["admin"] });
});
afterAll(() => scene.space.stop());

const callerOf = ({ owner, actor, uid }: Person) => ({ owner, actor, lifecycleUid: uid });
const argsOf = (manager: Scene["manager"]) => ({
  ...proven(manager, "manager-admin-authorization"),
  caller: callerOf(admin),
});
const authorized = async (caller = callerOf(admin)): Promise<boolean> => {
  const args = { ...argsOf(scene.manager), caller };
  return (await scene.manager.client.call(managerAuthorizeAdmin, args, { once: true })).authorized;
};

refusesStrangers(() => scene, managerAuthorizeAdmin, argsOf);
refusesUnregistered(() => scene, managerAuthorizeAdmin, argsOf);

describe("whether a caller is an administrator", () => {
  it("is said of this owner's active row at that uid with the scope admin", async () => {
    const { manager } = scene;
    const request = argsOf(manager);
    const answer = await manager.client.call(managerAuthorizeAdmin, request, { once: true });
    const { identities, caller } = request;
    expect(answer).toEqual({ ...provenEcho(manager, request), identities, caller, authorized: true });
  });

  it("is denied with one answer for every other reason, and never written", async () => {
    const { space, person } = scene;
    const bob = await space.person("bob", { scope: ["admin"] });
    const before = await sequences(space);
    expect(await authorized(callerOf(person))).toBe(false);
    expect(await authorized(callerOf(bob))).toBe(false);
    expect(await authorized({ ...callerOf(admin), actor: Actor.parse("nobody") })).toBe(false);
    expect(await authorized({ ...callerOf(admin), lifecycleUid: newUid(systemPorts) })).toBe(false);
    expect(await sequences(space)).toEqual(before);
    const scope = ["supervise", "run", "spawn"].map((name) => Scope.parse(name));
    for (const change of [{ scope }, { state: "revoked" as const }]) {
      await during(space, actorRows.key(admin), change, async () => expect(await authorized()).toBe(false));
    }
    expect(await authorized()).toBe(true);
  });
});
