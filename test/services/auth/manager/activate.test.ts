import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { managerActivate } from "../../../../shared/contracts/auth/manager/activate.ts";
import { managerRenew } from "../../../../shared/contracts/auth/manager/renew.ts";
import { artifactOf, type Input } from "../../../../shared/contracts/operation.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { serviceSpecRows } from "../../../../shared/rows/service.ts";
import { Digest } from "../../../../shared/tokens.ts";
import type { TestManager } from "../../../kit/manager.ts";
import { ManagerContract } from "../../../kit/manager-contract.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { hears } from "../hear.ts";
import { expectRow, itIssues, proofK, rowOf } from "../issuing.ts";
import { MANAGER } from "../scene.ts";

const ROLES = ["serve", "goalWriter", "sessionLedger"] as const;

let space: TestSpace;
let manager: TestManager;

beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth", "exchange"], authTimeoutS: 1 });
  manager = await newManager();
});
afterAll(() => space.stop());

const newManager = async (upTo: "register" | "serve" = "serve"): Promise<TestManager> =>
  space.manager(await space.person(`alice-${newUid(systemPorts)}`, { scope: ["supervise"] }), { upTo });

function args(
  of: TestManager,
  contractArtifacts: readonly unknown[] = of.contract.documents,
): Input<typeof managerActivate> {
  return {
    ...of.envelope(),
    kind: "manager-service-authority",
    operation: "activate",
    registrationProof: of.declaration(contractArtifacts),
    contractArtifacts: [...contractArtifacts],
  };
}

itIssues({
  operation: managerActivate,
  proof: "U",
  scene: () => ({ space, manager, person: manager.person }),
  args,
  moved: "expired",
});

describe("an activation", () => {
  it("gives the serve family over the open gate, and the proof of that registration", async () => {
    const request = args(manager);
    const answer = await manager.client.call(managerActivate, request);
    const { issuedAt, credentials } = answer;
    expect(answer).toEqual({
      v: 1,
      kind: "manager-service-authority",
      operation: "activate",
      space: "demo",
      owner: manager.person.owner,
      actor: "cli",
      instanceId: manager.instanceId,
      lifecycleUid: manager.uid,
      requestId: request.requestId,
      registrationProof: request.registrationProof,
      nextRegistrationProof: await proofK(space, manager, manager.person.actor),
      issuedAt: expect.any(Number),
      expiresAt: Math.min(...ROLES.map((role) => credentials[role].exp)) * 1_000,
      actors: expect.objectContaining({ serve: `manager_serve_${manager.instanceId}` }),
      identities: request.identities,
      credentials: expect.anything(),
    });
    expect(Object.keys(credentials).sort()).toEqual([...ROLES].sort());
    for (const role of ROLES) {
      expect(credentials[role].exp - Math.floor(issuedAt / 1_000)).toBe(900);
      await expectRow(space, manager, role, credentials[role], { credentialKey: request.identities[role].id });
    }
  });

  it("serves the registered commands and the owner's on the class rail, and no others", async () => {
    const { serve } = (await manager.client.call(managerActivate, args(manager))).credentials;
    const serving = await manager.connectAs(serve.jwt, manager.keys.serve);
    const { root } = { root: space.roots.space };
    const instance = `cotal.demo.ep.inst.manager.${manager.instanceId}`;
    await hears(serving, root, `${instance}.run-start.x`);
    await hears(serving, root, `${instance.replace(".ep.", ".ep.v1.")}.run-start.x`);
    await hears(serving, root, `${instance}.describe.x`);
    await expect(hears(serving, root, `${instance}.despawn.x`)).rejects.toThrow();
    await expect(
      hears(serving, root, `cotal.demo.ep.inst.manager.${newUid(systemPorts)}.run-start.x`),
    ).rejects.toThrow();
    await expect(hears(serving, root, `cotal.demo.ep.one.manager.status.x`)).rejects.toThrow();
  });

  it("takes artifacts in any order and ignores what the cluster document does not reach", async () => {
    const extra = { type: "string", maxLength: 7 };
    const artifacts = [extra, ...[...manager.contract.documents].reverse()];
    const answer = await manager.client.call(managerActivate, args(manager, artifacts));
    expect(answer.nextRegistrationProof).toBe(manager.proof);
  });

  it("issues anew at a repeat and leaves what was issued before", async () => {
    const request = args(manager);
    const before = (await manager.client.call(managerActivate, request)).credentials.serve;
    const after = (await manager.client.call(managerActivate, request)).credentials.serve;
    expect(after.jwt).not.toBe(before.jwt);
    for (const { jwt } of [before, after]) expect((await rowOf(space, manager, jwt))?.value.state).toBe("active");
  });

  it("gives a proof with which the next request is good, and takes the older ones away", async () => {
    const of = await newManager();
    const old = of.proof;
    await of.publish();
    await of.register();
    const renew = { ...of.envelope(), kind: "manager-service-authority", operation: "renew" } as const;
    const asked = (registrationProof: Digest) => of.person.ask(managerRenew, { ...renew, registrationProof });
    await unchanged(space, "permission-denied", () => asked(old));
    await of.activate();
    await unchanged(space, "permission-denied", () => asked(old));
    expect((await asked(of.proof)).operation).toBe("renew");
  });
});

describe("the artifacts (2)", () => {
  const refused = (artifacts: readonly unknown[], of = manager) =>
    unchanged(space, "contract-invalid", () => of.client.call(managerActivate, args(of, artifacts), { once: true }));
  const parts = () => {
    const [cluster, ...schemas] = manager.contract.documents as [{ commands: { name: string }[] }, ...object[]];
    return { cluster, schemas };
  };

  it("hold exactly one cluster document of a manager", async () => {
    const { cluster, schemas } = parts();
    await refused(schemas);
    await refused([cluster, cluster, ...schemas]);
    await refused([{ ...cluster, urn: "ai.cotal.auth" }, ...schemas]);
  });

  it("hold all that it refers to", async () => {
    const { cluster, schemas } = parts();
    await refused([cluster, ...schemas.slice(1)]);
  });

  it("declare each command once, and none that is reserved", async () => {
    const { cluster, schemas } = parts();
    const [first, ...rest] = cluster.commands;
    await refused([{ ...cluster, commands: [first, first, ...rest] }, ...schemas]);
    await refused([{ ...cluster, commands: [{ ...first, name: "describe" }, ...rest] }, ...schemas]);
  });

  it("keep to the schema profile, even those that nothing reaches", async () => {
    const { cluster, schemas } = parts();
    for (const bad of [
      { type: "string" },
      { type: "object", properties: {} },
      { $ref: "https://elsewhere.example/schema" },
      { type: "string", maxLength: 9, pattern: "(?=a)" },
      "text",
      7,
      null,
    ]) {
      await refused([cluster, ...schemas, bad]);
    }
  });

  it("are 1 to 64", async () => {
    const many = Array.from({ length: 65 }, (_, at) => ({ type: "string", maxLength: at + 1 }));
    for (const artifacts of [[], many]) {
      await unchanged(space, "bad-request", () =>
        manager.client.call(managerActivate, args(manager, artifacts), { once: true }),
      );
    }
  });

  it("are those that the proof was computed over, member by member (1)", async () => {
    const [cluster, ...schemas] = manager.contract.documents;
    const reordered = [Object.fromEntries(Object.entries(cluster ?? {}).reverse()), ...schemas];
    expect(artifactOf(reordered[0]).digest).toBe(artifactOf(cluster).digest);
    const request = { ...args(manager), contractArtifacts: reordered };
    await unchanged(space, "permission-denied", () => manager.client.call(managerActivate, request, { once: true }));
    const empty = { ...args(manager), registrationProof: manager.declaration() };
    await unchanged(space, "permission-denied", () => manager.client.call(managerActivate, empty, { once: true }));
  });
});

describe("the registered contract (3)", () => {
  const specKey = (of: TestManager) => serviceSpecRows.key({ endpoint: MANAGER, instanceId: of.instanceId });
  const refused = (of: TestManager, artifacts?: readonly unknown[]) =>
    unchanged(space, "failed-precondition", () => of.client.call(managerActivate, args(of, artifacts), { once: true }));

  it("is that of these artifacts and of no other version", async () => {
    await refused(manager, new ManagerContract(2).documents);
  });

  it("still stands as it was registered", async () => {
    const of = await newManager("register");
    await of.publish();
    await refused(of);
  });

  it("is there", async () => {
    const of = await newManager("register");
    const spec = await space.store.read(specKey(of));
    if (!spec) throw new Error("no service record");
    await space.put(specKey(of), { ...spec.value, clusterDigests: [Digest.parse(`sha256:${"0".repeat(64)}`)] });
    await refused(of);
  });
});
