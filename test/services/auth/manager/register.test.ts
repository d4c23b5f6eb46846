import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { managerActivate } from "../../../../shared/contracts/auth/manager/activate.ts";
import { managerRegister } from "../../../../shared/contracts/auth/manager/register.ts";
import { type Artifact, artifactOf, type Input, manifestOf } from "../../../../shared/contracts/operation.ts";
import { newNonce, newUid, systemPorts } from "../../../../shared/ports.ts";
import { actorRows } from "../../../../shared/rows/actor.ts";
import { epCredRows } from "../../../../shared/rows/credential.ts";
import { managerRows } from "../../../../shared/rows/manager.ts";
import { type ServiceSpec, serviceSpecRows } from "../../../../shared/rows/service.ts";
import { stageRows } from "../../../../shared/rows/stage.ts";
import { artifactSubject } from "../../../../shared/subjects.ts";
import {
  Actor,
  type Digest,
  Hex64,
  type Principal,
  type RequestId,
  Scope,
  type Triple,
  type Uid,
} from "../../../../shared/tokens.ts";
import type { Host } from "../../../kit/hosting.ts";
import type { TestManager } from "../../../kit/manager.ts";
import { ManagerContract } from "../../../kit/manager-contract.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import type { Person } from "../../../kit/person.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { unchanged } from "../../../kit/unchanged.ts";
import { connectIdentity, hangUp } from "../connections.ts";
import { during, frozen, gateKeyOf, MANAGER, retired, stored } from "../scene.ts";

let space: TestSpace;
let custodian: Host;
let alice: Person;
/** Registered; no case does away with it. */
let manager: TestManager;

beforeAll(async () => {
  space = await startSpace({ services: ["auth", "exchange"], authTimeoutS: 1 });
  custodian = await space.host(["custodian"]);
  alice = await space.person("alice", { scope: ["supervise"] });
  manager = await space.manager(alice, { upTo: "register" });
});
afterAll(() => space.stop());

const args = (of: TestManager): Input<typeof managerRegister> => ({
  v: 1,
  requestId: newNonce(systemPorts) as string as RequestId,
  instanceId: of.instanceId,
  managerLifecycleUid: of.uid,
});
const asked = (of: TestManager, change: object = {}, deadlineMs = 15_000) =>
  of.client.call(managerRegister, { ...args(of), ...change }, { once: true, deadlineMs });
type Code = Parameters<typeof unchanged>[1];
const refused = (code: Code, of = manager, change: object = {}) => unchanged(space, code, () => asked(of, change));
/** The manager started again, on a connection of its own. */
const again = (of: TestManager) =>
  space.clientAs({ owner: alice.owner, actor: Actor.parse(`manager_${of.instanceId}`), uid: of.uid });
const specKey = (of: TestManager) => serviceSpecRows.key({ endpoint: MANAGER, instanceId: of.instanceId });
const rowsOf = async (of: TestManager) =>
  (await space.store.scan(epCredRows, { endpoint: MANAGER, instanceId: of.instanceId })).entries.map(
    ({ value }) => value,
  );

describe("the caller", () => {
  const own = (): Triple => ({
    owner: alice.owner,
    actor: Actor.parse(`manager_${manager.instanceId}`),
    uid: manager.uid,
  });
  const as = (code: Code, caller: Triple, change: object = {}) =>
    unchanged(space, code, () =>
      space.clientAs(caller).call(managerRegister, { ...args(manager), ...change }, { once: true }),
    );

  it("is the manager itself and nobody else", async () => {
    await as("permission-denied", await space.provisioned("operator"));
    await as("permission-denied", await space.provisioned("gateway_loopback"));
    await as("permission-denied", await space.provisioned("platform_host"));
    await as("permission-denied", alice);
    for (const identity of ["exec", "serve", "goal", "session"]) {
      await as("permission-denied", { ...own(), actor: Actor.parse(`manager_${identity}_${manager.instanceId}`) });
    }
    await as("permission-denied", { ...own(), owner: (await space.person("bob")).owner });
    await as("permission-denied", { ...own(), actor: Actor.parse(`manager_${newUid(systemPorts)}`) });
    await as("expired", { ...own(), uid: newUid(systemPorts) });
  });

  it("names itself", async () => {
    await refused("permission-denied", manager, { instanceId: newUid(systemPorts) });
    await refused("permission-denied", manager, { managerLifecycleUid: newUid(systemPorts) });
  });

  it("has a granter that is interactive, active, the same incarnation, and may supervise", async () => {
    const key = actorRows.key(alice);
    for (const change of [
      { scope: ["admin", "spawn", "run"].map((scope) => Scope.parse(scope)) },
      { state: "revoked" as const },
      { kind: "managed" as const, tokenHash: Hex64.parse("0".repeat(64)) },
      { lifecycleUid: newUid(systemPorts) },
    ]) {
      await during(space, key, change, () => refused("permission-denied"));
    }
  });
});

describe("check", () => {
  it("1: the gate is there, open or frozen by a registration", async () => {
    for (const change of [frozen("retirement"), retired()]) {
      await during(space, gateKeyOf(manager), change, () => refused("failed-precondition"));
    }
    const instanceId = newUid(systemPorts);
    const { owner, actor, uid: lifecycleUid } = alice;
    const grantedBy = { kind: "actor" as const, owner, actor, lifecycleUid };
    await space.put(managerRows.key({ instanceId }), {
      v: 1,
      instanceId,
      owner,
      managerLifecycleUid: manager.uid,
      grantedBy,
    });
    const caller = { owner, actor: Actor.parse(`manager_${instanceId}`), uid: manager.uid };
    await unchanged(space, "failed-precondition", () =>
      space.clientAs(caller).call(managerRegister, { ...args(manager), instanceId }, { once: true }),
    );
  });

  it("2: the gate is the owner's", async () => {
    const principal = `${alice.owner}.manager_serve_${newUid(systemPorts)}` as Principal;
    await during(space, gateKeyOf(manager), { principal }, () => refused("permission-denied"));
  });

  it("3: the service record is written", async () => {
    await refused("failed-precondition", await space.manager(alice, { upTo: "prepare" }));
  });

  it("4: the service record is the owner's", async () => {
    const { owner } = await space.person("bob");
    await during(space, specKey(manager), { owner }, () => refused("permission-denied"));
  });

  describe("5: the contract", () => {
    const withDigests = (clusterDigests: readonly Digest[], of = manager) =>
      during<ServiceSpec, unknown>(space, specKey(of), { clusterDigests: [...clusterDigests] }, () =>
        refused("contract-invalid", of),
      );
    /** Puts documents where an executor would. */
    async function publish(...artifacts: readonly Artifact[]): Promise<void> {
      for (const { digest, text } of artifacts) {
        await space.roots.space.request(artifactSubject(space.space, digest.slice(7)), text, { timeout: 5_000 });
      }
    }

    it("is one cluster", async () => {
      const { clusterDigest } = manager.contract.registered;
      await withDigests([]);
      await withDigests([clusterDigest, clusterDigest]);
    });

    it("is published, the manifest and all it lists", async () => {
      await withDigests([artifactOf({ nowhere: newUid(systemPorts) }).digest]);
      const manifest = artifactOf(manifestOf(artifactOf({ nowhere: newUid(systemPorts) }).digest, []));
      await publish(manifest);
      await withDigests([manifest.digest]);
    });

    it("is the cluster document of a manager, and its manifest lists what that reaches and nothing else", async () => {
      const text = artifactOf({ type: "string", maxLength: 3 });
      const notCluster = artifactOf(manifestOf(text.digest, []));
      await publish(text, notCluster);
      await withDigests([notCluster.digest]);
      const documents = manager.contract.documents.map((document) => artifactOf(document));
      const [cluster, ...members] = documents;
      if (!cluster) throw new Error("no cluster document");
      const more = artifactOf(
        manifestOf(
          cluster.digest,
          [...members, text].map(({ digest }) => digest),
        ),
      );
      await publish(more);
      await withDigests([more.digest]);
    });

    it("is within the schema profile", async () => {
      const unbounded = artifactOf({ type: "string" });
      const command = {
        name: "echo",
        input: { $ref: unbounded.digest },
        output: { $ref: unbounded.digest },
        class: "ephemeral",
        targeted: false,
        modes: [],
        capability: "manager.echo",
        effect: "write",
        traits: [],
      };
      const cluster = artifactOf({
        urn: "ai.cotal.manager",
        revision: 1,
        attributes: [],
        commands: [command],
        events: [],
      });
      const manifest = artifactOf(manifestOf(cluster.digest, [unbounded.digest]));
      await publish(unbounded, cluster, manifest);
      await withDigests([manifest.digest]);
    });

    it("has the bytes that its digests say", async () => {
      const digest = artifactOf({ wanted: newUid(systemPorts) }).digest;
      await publish({ digest, text: "{}" });
      await withDigests([digest]);
    });
  });
});

describe("a registration", () => {
  it("gives the first epoch, at the revision of the service record", async () => {
    const of = await space.manager(alice, { upTo: "publish" });
    const spec = await space.store.read(specKey(of));
    const request = args(of);
    expect(await of.client.call(managerRegister, request)).toEqual({
      v: 1,
      requestId: request.requestId,
      instanceId: of.instanceId,
      generation: 1,
      processEpoch: 0,
      registrationRevision: spec?.revision,
      clusterDigest: of.contract.registered.clusterDigest,
    });
    expect(await stored(space, gateKeyOf(of))).toMatchObject({ state: "open", generation: 1, processEpoch: 0 });
  });

  it("again is one more restart: the next epoch, the serve family revoked and gone, the others left alone", async () => {
    const of = await space.manager(alice);
    const before = await rowsOf(of);
    await hangUp(of);
    const [serve, supervisor, executor] = await Promise.all(
      (["serve", "supervisor", "executor"] as const).map((identity) => connectIdentity(space, of, identity)),
    );
    const second = await again(of).call(managerRegister, args(of));
    expect(second).toMatchObject({ generation: 2, processEpoch: 1 });
    await serve?.closed();
    expect([supervisor?.isClosed(), executor?.isClosed()]).toEqual([false, false]);
    const family = new Set(["serve", "goalWriter", "sessionLedger"]);
    for (const { role, state } of await rowsOf(of)) expect(state, role).toBe(family.has(role) ? "revoked" : "active");
    expect(await rowsOf(of)).toHaveLength(before.length);
  });

  it("of another contract has its digest", async () => {
    const of = await space.manager(alice, { upTo: "register", contract: new ManagerContract(7) });
    expect(of.coordinates.clusterDigest).not.toBe(manager.coordinates.clusterDigest);
  });

  it("stays frozen while nobody proves the predecessor gone, and is resumed under the same operation", async () => {
    const of = await space.manager(alice);
    await hangUp(of);
    const serve = await connectIdentity(space, of, "serve");
    await custodian.stop();
    const ask = (deadlineMs: number) => again(of).call(managerRegister, args(of), { once: true, deadlineMs });
    await expect(ask(1_200)).rejects.toMatchObject({
      code: expect.stringMatching(/^(unavailable|deadline-exceeded)$/),
    });
    const gate = await stored(space, gateKeyOf(of));
    expect(gate).toMatchObject({ state: "frozen", op: { kind: "registration" }, processEpoch: 0 });
    for (const { role, state } of await rowsOf(of))
      expect(state).toBe(["supervisor", "executor"].includes(role) ? "active" : "revoked");
    expect(serve.isClosed()).toBe(false);
    await unchanged(space, "failed-precondition", () =>
      of.person.ask(managerActivate, {
        ...of.envelope(),
        kind: "manager-service-authority",
        operation: "activate",
        registrationProof: of.declaration(of.contract.documents),
        contractArtifacts: [...of.contract.documents],
      }),
    );
    custodian = await space.host(["custodian"]);
    expect(await ask(15_000)).toMatchObject({ generation: 2, processEpoch: 1 });
    await serve.closed();
    const opId = gate.op?.opId as Uid;
    expect(await stored(space, stageRows.key({ opId }))).toMatchObject({
      kind: "registration",
      phase: "finished",
      evicted: expect.arrayContaining([`${alice.owner}.manager_serve_${of.instanceId}`]),
    });
  });

  it("does not open over a predecessor that comes back", async () => {
    const of = await space.manager(alice);
    // The kit's connections reconnect for as long as the broker admits their JWT.
    await of.connection("serve");
    const ask = () => again(of).call(managerRegister, args(of), { once: true, deadlineMs: 15_000 });
    await expect(ask()).rejects.toMatchObject({ code: "unavailable" });
    expect(await stored(space, gateKeyOf(of))).toMatchObject({ state: "frozen", processEpoch: 0 });
    await (await of.connection("serve")).close();
    expect(await ask()).toMatchObject({ processEpoch: 1 });
  });
});

describe("a service record that is written anew during the registration", () => {
  async function meanwhile(of: TestManager, change: Partial<ServiceSpec>) {
    const pause = pauseCommit(`epgate.manager.${of.instanceId}`, "after");
    const answer = asked(of);
    answer.catch(() => {});
    await pause.reached;
    await space.put(specKey(of), { ...(await stored(space, specKey(of))), ...change });
    pause.resume();
    return answer;
  }

  it("is the one that is registered, if it is whole", async () => {
    const of = await space.manager(alice, { upTo: "publish" });
    const { clusterDigest, artifacts } = new ManagerContract(8).registered;
    for (const { digest, text } of artifacts) {
      await space.roots.space.request(artifactSubject(space.space, digest.slice(7)), text, { timeout: 5_000 });
    }
    const answer = await meanwhile(of, { clusterDigests: [clusterDigest] });
    expect(answer.clusterDigest).toBe(clusterDigest);
    expect(answer.registrationRevision).toBe((await space.store.read(specKey(of)))?.revision);
  });

  it("keeps the gate frozen until it is whole", async () => {
    const of = await space.manager(alice, { upTo: "publish" });
    const nowhere = artifactOf({ nowhere: newUid(systemPorts) }).digest;
    await expect(meanwhile(of, { clusterDigests: [nowhere] })).rejects.toMatchObject({ code: "contract-invalid" });
    expect(await stored(space, gateKeyOf(of))).toMatchObject({ state: "frozen", op: { kind: "registration" } });
    await of.publish();
    expect(await of.register()).toMatchObject({ generation: 1, processEpoch: 0 });
  });
});
