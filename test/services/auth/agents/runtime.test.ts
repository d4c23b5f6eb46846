import { afterAll, beforeAll, describe, it } from "vitest";
import { agentRuntimeCreate } from "../../../../shared/contracts/auth/agents/runtime-create.ts";
import { agentRuntimeStatus } from "../../../../shared/contracts/auth/agents/runtime-status.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { Actor } from "../../../../shared/tokens.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { refusesStrangers, refusesUnregistered } from "../manager-refusals.ts";
import { ask, proven, type Scene, startScene } from "../scene.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await startScene();
});
afterAll(() => scene.space.stop());

describe.each([
  [agentRuntimeCreate, "manager-managed-agent-runtime-create"],
  [agentRuntimeStatus, "manager-managed-agent-runtime-status"],
] as const)("%# a runtime kind", (operation, kind) => {
  const argsOf = (manager: Scene["manager"]) => ({
    ...proven(manager, kind),
    target: { owner: manager.person.owner, actor: Actor.parse("coder"), lifecycleUid: newUid(systemPorts) },
  });

  refusesStrangers(() => scene, operation, argsOf);
  refusesUnregistered(() => scene, operation, argsOf);

  it("wants a target of the owner's (check 2)", async () => {
    const { space, manager } = scene;
    const { target, ...rest } = argsOf(manager);
    const foreign = { ...rest, target: { ...target, owner: `u_${"b".repeat(26)}` } };
    await unchanged(space, "permission-denied", () => ask(manager, operation, foreign));
  });

  it("is always unimplemented, on either road", async () => {
    const { space, manager, person } = scene;
    await unchanged(space, "unimplemented", () => ask(manager, operation, argsOf(manager)));
    await unchanged(space, "unimplemented", () => person.ask(operation, argsOf(manager)));
  });
});
