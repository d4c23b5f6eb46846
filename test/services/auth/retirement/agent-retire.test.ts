import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentRetire } from "../../../../shared/contracts/auth/retirement/agent-retire.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { headRows } from "../../../../shared/rows/head.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { freshOwner, lifecycle, named, rowsOf } from "../lifecycles.ts";
import { during, provisioned } from "../scene.ts";

let space: TestSpace;
beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth"], authTimeoutS: 1 });
});
afterAll(() => space.stop());

const retire = (args: ReturnType<typeof named>) => space.operator.call(agentRetire, args, { once: true });

it("retires an agent that was prepared, and says so again", async () => {
  const agent = await lifecycle(space);
  expect(await retire(named(agent))).toEqual({ retired: true, lifecycleUid: agent.uid });
  expect(await rowsOf(space, agent)).toMatchObject({
    gate: { state: "retired", op: { opId: agent.opId } },
    head: { state: "retired" },
  });
  const before = await sequences(space);
  expect(await retire(named(agent))).toEqual({ retired: true, lifecycleUid: agent.uid, alreadyRetired: true });
  expect(await sequences(space)).toEqual(before);
});

describe("finds nothing to begin, and writes nothing,", () => {
  const notStarted = async (args: ReturnType<typeof named>) => {
    const before = await sequences(space);
    const { lifecycleUid } = args;
    expect(await retire(args)).toEqual({ retired: false, lifecycleUid, notStarted: true });
    expect(await sequences(space)).toEqual(before);
  };

  it("where no such principal ever lived", async () => {
    await notStarted(named({ ...(await lifecycle(space)), owner: freshOwner() }));
  });

  it("where another incarnation was the last, and is retired", async () => {
    const agent = await lifecycle(space, { head: { state: "retired" } });
    await notStarted(named({ ...agent, uid: newUid(systemPorts) }));
  });
});

describe("is refused, with nothing written,", () => {
  const refused = (code: ErrorCode, args: ReturnType<typeof named>) => unchanged(space, code, () => retire(args));

  it("for an agent that was not prepared, and for a person (check 1)", async () => {
    await refused("conflict", named(await lifecycle(space, { state: "active" })));
    await refused("conflict", named(await lifecycle(space, { kind: "interactive" })));
    await refused("conflict", named(await lifecycle(space, { kind: "interactive", state: "revoked" })));
  });

  it("while another incarnation lives or retires (check 2)", async () => {
    const agent = await lifecycle(space);
    const superseded = named({ ...agent, uid: newUid(systemPorts) });
    const error = await refused("conflict", superseded);
    expect(error.details).toEqual([{ kind: "ai.cotal.auth.current-lifecycle", lifecycleUid: agent.uid }]);
    const { opId } = agent;
    await during(space, headRows.key(agent), { state: "retiring", op: { opId, kind: "retirement" } }, () =>
      refused("conflict", superseded),
    );
  });

  it("to anybody but the operator", async () => {
    const agent = await lifecycle(space);
    for (const caller of [agent, await provisioned(space, "platform_host")]) {
      await unchanged(space, "permission-denied", () =>
        space.clientAs(caller).call(agentRetire, named(agent), { once: true }),
      );
    }
  });
});
