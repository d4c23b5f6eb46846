import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AuthorityClient } from "../../../../shared/client.ts";
import { authDescribe } from "../../../../shared/contracts/auth/describe.ts";
import { managerRetire } from "../../../../shared/contracts/auth/manager/retire.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import { interactiveRetireOpId, retireOpId } from "../../../../shared/credentials/roles.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { Actor, UserNkey } from "../../../../shared/tokens.ts";
import type { TestManager } from "../../../kit/manager.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { hears } from "../hear.ts";
import { expectRow, itIssues, rowOf } from "../issuing.ts";

let space: TestSpace;
let manager: TestManager;

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange"] });
  manager = await space.manager(await space.person("alice", { scope: ["supervise"] }));
});
afterAll(() => space.stop());

const args = (of: TestManager, key = createKeyPair("user")): Input<typeof managerRetire> => {
  const lifecycleUid = newUid(systemPorts);
  return {
    ...of.envelope(),
    kind: "manager-service-authority",
    operation: "retire",
    registrationProof: of.declaration(),
    retirement: {
      id: UserNkey.parse(key.public),
      target: { owner: of.person.owner, actor: Actor.parse("coder"), lifecycleUid },
      opId: retireOpId(lifecycleUid),
      serveEpoch: of.coordinates.processEpoch,
    },
  };
};
type Retirement = Input<typeof managerRetire>["retirement"];
const refused = (code: "bad-request" | "permission-denied" | "conflict", change: (good: Retirement) => Retirement) => {
  const request = args(manager);
  const wrong = { ...request, retirement: change(request.retirement) };
  return unchanged(space, code, () => manager.client.call(managerRetire, wrong, { once: true }));
};

itIssues({ operation: managerRetire, proof: "U", scene: () => ({ space, manager, person: manager.person }), args });

describe("what is asked for", () => {
  it("is the retirement whose id follows from the target", () =>
    refused("bad-request", (good) => ({ ...good, opId: newUid(systemPorts) })));

  it("is judged before whose the target is, and that before the proof", async () => {
    const other = await space.person("bob");
    const foreign = { owner: other.owner, actor: other.actor, lifecycleUid: other.uid };
    await refused("bad-request", (good) => ({ ...good, target: foreign }));
    const request = args(manager);
    const retirement = { ...request.retirement, target: foreign, opId: retireOpId(other.uid) };
    const wrong = { ...request, retirement, registrationProof: manager.proof };
    await unchanged(space, "permission-denied", () => manager.client.call(managerRetire, wrong, { once: true }));
  });

  it("is of the owner's own", async () => {
    const other = await space.person("bob");
    const target = { owner: other.owner, actor: other.actor, lifecycleUid: other.uid };
    await refused("permission-denied", (good) => ({ ...good, target, opId: retireOpId(other.uid) }));
  });

  it("is asked for at the epoch under which the instance serves", async () => {
    const { details } = await refused("conflict", (good) => ({ ...good, serveEpoch: good.serveEpoch + 1 }));
    const { instanceId, coordinates } = manager;
    expect(details).toEqual([{ kind: "ai.cotal.auth.incarnation", instanceId, epoch: coordinates.processEpoch }]);
  });
});

describe("a retirement requester", () => {
  it("is issued for 300 s to the serve principal, for a managed target and for a person's", async () => {
    for (const derive of [retireOpId, interactiveRetireOpId]) {
      const request = args(manager);
      const retirement = { ...request.retirement, opId: derive(request.retirement.target.lifecycleUid) };
      const answer = await manager.client.call(managerRetire, { ...request, retirement });
      const { retirementRequester } = answer.credentials;
      expect(answer.retirement).toEqual(retirement);
      expect(retirementRequester.exp - Math.floor(answer.issuedAt / 1_000)).toBe(300);
      await expectRow(space, manager, "retirementRequester", retirementRequester, { credentialKey: retirement.id });
    }
  });

  it("asks for that one retirement and reads contracts", async () => {
    const key = createKeyPair("user");
    const request = args(manager, key);
    const { retirementRequester } = (await manager.client.call(managerRetire, request)).credentials;
    const connection = await manager.connectAs(retirementRequester.jwt, key);
    const caller = {
      owner: manager.person.owner,
      actor: Actor.parse(`manager_serve_${manager.instanceId}`),
      uid: manager.uid,
    };
    const client = new AuthorityClient({
      connection,
      space: space.space,
      caller,
      inboxPrefix: `_INBOX_${key.public}`,
      name: "requester",
      ports: systemPorts,
    });
    await client.call(authDescribe, null);
    const { owner, actor, lifecycleUid } = request.retirement.target;
    const on = (uid: string) =>
      `cotal.demo.ep.one.auth.retire-lifecycle.exact.${owner}.${actor}.${uid}.${caller.owner}.${caller.actor}.${caller.uid}.${"n".repeat(22)}`;
    await hears(space.roots.space, connection, on(lifecycleUid));
    await expect(hears(space.roots.space, connection, on(newUid(systemPorts)))).rejects.toThrow();
  });

  it("is another one at each repeat", async () => {
    const request = args(manager);
    for (const _ of [1, 2]) {
      const { retirementRequester } = (await manager.person.ask(managerRetire, request)).credentials;
      expect((await rowOf(space, manager, retirementRequester.jwt))?.value.state).toBe("active");
    }
  });
});
