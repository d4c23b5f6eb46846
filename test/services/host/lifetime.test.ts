/** A start that fails leaves nothing behind: no connection, and nobody who would open one again. */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startAuth } from "../../../services/auth/start.ts";
import { authServeActor } from "../../../shared/credentials/roles.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import { EndpointLabel, Owner, principalOf } from "../../../shared/tokens.ts";
import { startSpace, type TestSpace } from "../../kit/space.ts";

let space: TestSpace;
beforeAll(async () => {
  space = await startSpace();
});
afterAll(() => space.stop());

it("a start whose instance was retired closes what it opened, for good", async () => {
  const instanceId = await space.files.instanceId("1", systemPorts);
  await space.put(epGateRows.key({ endpoint: EndpointLabel.parse("auth"), instanceId }), {
    state: "retired",
    generation: 0,
    op: { opId: newUid(systemPorts), kind: "retirement" },
    processEpoch: 0,
    registrationRevision: 0,
    nameAuthorityRevision: 0,
    principal: principalOf(Owner.parse("local"), authServeActor(instanceId)),
  });
  const deps = await space.deps("auth");
  const open = vi.spyOn(deps.owned, "open");
  await expect(startAuth(deps)).rejects.toMatchObject({ code: "failed-precondition" });
  expect(open).toHaveBeenCalledTimes(4);
  await deps.owned.ended();
  await space.roots.space.flush(); // whoever follows the end of a connection has been told
  expect(open).toHaveBeenCalledTimes(4);
  expect(deps.owned.list().every(({ ended }) => ended)).toBe(true);
});
