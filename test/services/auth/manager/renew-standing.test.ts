import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { managerRenewStanding } from "../../../../shared/contracts/auth/manager/renew-standing.ts";
import { artifactOf, type Input, manifestOf } from "../../../../shared/contracts/operation.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { type ServiceSpec, serviceSpecRows } from "../../../../shared/rows/service.ts";
import { artifactSubject } from "../../../../shared/subjects.ts";
import { Digest } from "../../../../shared/tokens.ts";
import type { TestManager } from "../../../kit/manager.ts";
import { pauseRead } from "../../../kit/pause.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { hears, writes } from "../hear.ts";
import { expectRow, itIssues, proofK } from "../issuing.ts";
import { gateKeyOf, MANAGER, stored } from "../scene.ts";

const ROLES = ["supervisor", "executor", "serve", "goalWriter", "sessionLedger"] as const;

let space: TestSpace;
let manager: TestManager;

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange"] });
  manager = await newManager();
});
afterAll(() => space.stop());

const newManager = async (): Promise<TestManager> =>
  space.manager(await space.person(`alice-${newUid(systemPorts)}`, { scope: ["supervise"] }));

const args = (of: TestManager): Input<typeof managerRenewStanding> => ({
  ...of.proven(),
  kind: "manager-service-authority",
  operation: "renewStandingBundle",
});

itIssues({
  operation: managerRenewStanding,
  proof: "K",
  scene: () => ({ space, manager, person: manager.person }),
  args,
});

describe("what is renewed", () => {
  it("is all five in one commit, each on its row", async () => {
    const request = args(manager);
    const before = await space.store.lastSeq("auth");
    const answer = await manager.client.call(managerRenewStanding, request);
    expect(await space.store.lastSeq("auth")).toBe((before ?? 0) + 5);
    const { registrationProof, accountPublicKey, processEpoch } = request;
    expect(answer).toMatchObject({ registrationProof, accountPublicKey, processEpoch, lifecycleUid: manager.uid });
    expect(Object.keys(answer.credentials).sort()).toEqual([...ROLES].sort());
    expect(answer.expiresAt).toBe(answer.credentials.executor.exp * 1_000);
    for (const role of ROLES) {
      await expectRow(space, manager, role, answer.credentials[role], { credentialKey: request.identities[role].id });
    }
  });

  it("serves, writes goals, and holds the session ledger", async () => {
    const { owner } = manager.person;
    const { serve, goalWriter, sessionLedger } = (await manager.client.call(managerRenewStanding, args(manager)))
      .credentials;
    const serving = await manager.connectAs(serve.jwt, manager.keys.serve);
    const at = `manager.${manager.instanceId}`;
    await hears(serving, space.roots.space, `cotal.demo.ep.v1.inst.${at}.run-start.x`);
    await hears(space.roots.space, serving, `cotal.demo.epe.${at}.${manager.coordinates.processEpoch}.x`);
    const goals = await manager.connectAs(goalWriter.jwt, manager.keys.goalWriter);
    await writes(
      goals,
      `$KV.cotal_records_demo.goalidx.manager.${owner}.cli.${manager.uid}.${newUid(systemPorts)}`,
      {},
    );
    await manager.connectAs(sessionLedger.jwt, manager.keys.sessionLedger);
  });

  it("has the registered serve surface and no other command", async () => {
    const { serve } = (await manager.client.call(managerRenewStanding, args(manager))).credentials;
    const serving = await manager.connectAs(serve.jwt, manager.keys.serve);
    const other = `cotal.demo.ep.inst.manager.${manager.instanceId}.despawn.x`;
    await expect(hears(serving, space.roots.space, other)).rejects.toThrow();
  });
});

describe("the registered service record", () => {
  const specKey = (of: TestManager) => serviceSpecRows.key({ endpoint: MANAGER, instanceId: of.instanceId });

  /** Writes a record as if it had been registered, with the proof that goes with it. */
  async function registered(
    of: TestManager,
    change: Partial<ServiceSpec>,
  ): Promise<Input<typeof managerRenewStanding>> {
    const spec = await space.store.read(specKey(of));
    if (!spec) throw new Error("no service record");
    const registrationRevision = await space.put(specKey(of), { ...spec.value, ...change });
    await space.put(gateKeyOf(of), { ...(await stored(space, gateKeyOf(of))), registrationRevision });
    return { ...args(of), registrationProof: await proofK(space, of, of.person.actor, { registrationRevision }) };
  }

  it("must stand as it was registered", async () => {
    const of = await newManager();
    await of.publish();
    await unchanged(space, "failed-precondition", () => of.client.call(managerRenewStanding, args(of), { once: true }));
  });

  it("must be there", async () => {
    const of = await space.manager(manager.person, { upTo: "prepare" });
    await space.put(gateKeyOf(of), { ...(await stored(space, gateKeyOf(of))), registrationRevision: 1 });
    const coordinates = { ...manager.coordinates, registrationRevision: 1, processEpoch: 0 };
    const described = { person: of.person, envelope: () => of.envelope(), coordinates };
    const registrationProof = await proofK(space, described, of.person.actor);
    const request = { ...args(manager), ...of.envelope(), processEpoch: 0, registrationProof };
    await unchanged(space, "failed-precondition", () => of.client.call(managerRenewStanding, request, { once: true }));
  });

  it("must be the owner's", async () => {
    const of = await newManager();
    const request = await registered(of, { owner: manager.person.owner });
    await unchanged(space, "permission-denied", () => of.client.call(managerRenewStanding, request, { once: true }));
  });

  it("must have its closure in the stream", async () => {
    const of = await newManager();
    const request = await registered(of, { clusterDigests: [Digest.parse(`sha256:${"0".repeat(64)}`)] });
    await unchanged(space, "failed-precondition", () => of.client.call(managerRenewStanding, request, { once: true }));
  });

  it("must have that closure whole, each artifact what its digest says", async () => {
    const root = artifactOf({ of: newUid(systemPorts) });
    const rootless = artifactOf(manifestOf(root.digest, []));
    const forged = artifactOf({ wanted: newUid(systemPorts) }).digest;
    for (const { digest, text } of [rootless, { digest: forged, text: rootless.text }]) {
      await space.roots.space.request(artifactSubject(space.space, digest.slice("sha256:".length)), text);
      const of = await newManager();
      const request = await registered(of, { clusterDigests: [digest] });
      await unchanged(space, "failed-precondition", () =>
        of.client.call(managerRenewStanding, request, { once: true }),
      );
    }
  });

  it("must not move while signing", async () => {
    const of = await newManager();
    const pause = pauseRead(specKey(of).key, 2); // the first says what is served
    const answer = of.person.ask(managerRenewStanding, args(of));
    answer.catch(() => {});
    await pause.reached;
    await of.publish();
    await unchanged(space, "conflict", () => {
      pause.resume();
      return answer;
    });
  });
});
