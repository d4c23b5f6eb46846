/**
 * What holds for every operation that issues, whatever it issues (operations §1 to §4, M): each test of one runs it.
 * A case is the operation's own good request with one thing wrong.
 */
import { describe, expect, it } from "vitest";
import { credentialIdOf } from "../../../shared/canonical.ts";
import { managerPrepare } from "../../../shared/contracts/auth/manager/prepare.ts";
import type { Input, Operation, Output } from "../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { ROLES, type Role } from "../../../shared/credentials/roles.ts";
import type { ErrorCode } from "../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { currentRegistrationProof, declarationProof } from "../../../shared/proofs.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { type EpCred, epCredRows } from "../../../shared/rows/credential.ts";
import { loadSecret, SECRET } from "../../../shared/secrets/keys.ts";
import { touch } from "../../../shared/store/message.ts";
import { type Actor, Digest, type Uid } from "../../../shared/tokens.ts";
import { ownWork } from "../../../shared/work.ts";
import type { TestManager } from "../../kit/manager.ts";
import { pauseCommit } from "../../kit/pause.ts";
import type { TestSpace } from "../../kit/space.ts";
import { unchanged } from "../../kit/unchanged.ts";
import { refusesStrangers, refusesUnregistered } from "./manager-refusals.ts";
import { ask, during, frozen, gateKeyOf, MANAGER, retired, type Scene, stored } from "./scene.ts";

export interface Issuing<O extends Operation> {
  readonly operation: O;
  readonly proof: "K" | "U";
  /** Whose manager no case does away with. */
  scene(): Scene;
  /** What must be there before a manager's request is good. */
  before?(manager: TestManager): Promise<void>;
  /** A good request of that manager's. */
  args(manager: TestManager): Input<O>;
  /** What a gate that moved while signing is: `conflict` unless given. */
  readonly moved?: ErrorCode;
}

export function itIssues<O extends Operation>(given: Issuing<O>): void {
  const { operation, proof, scene } = given;
  const args = given.args as (manager: TestManager) => object;
  describe(`${operation.name}, as whatever issues`, () => {
    refusesStrangers(scene, operation, args);
    if (proof === "K") refusesUnregistered(scene, operation, args);
    else refusesUndeclared(scene, operation, args);
    mintsForItsGranter(given);
  });
}

/** Of an operation that carries U: a computable proof shows no registration, so the gate must. */
function refusesUndeclared(scene: () => Scene, operation: Operation, args: (manager: TestManager) => object): void {
  describe("the declaration check", () => {
    const refused = (code: "permission-denied" | "failed-precondition", change: object = {}) => {
      const { space, manager } = scene();
      return unchanged(space, code, () => ask(manager, operation, { ...args(manager), ...change }));
    };

    it("wants U over what is declared: no K, none over other identities", async () => {
      const { manager } = scene();
      await refused("permission-denied", { registrationProof: manager.proof });
      const { identities } = manager.envelope();
      const changed = { ...identities, serve: identities.executor, executor: identities.serve };
      await refused("permission-denied", { identities: changed });
    });

    it("wants the uid under which the instance is known, whoever computes U over another (C2)", async () => {
      const { space, manager, person } = scene();
      const other = { ...manager.envelope(), managerLifecycleUid: newUid(systemPorts) };
      const { contractArtifacts = [] } = args(manager) as { contractArtifacts?: readonly unknown[] };
      const registrationProof = declarationProof({ ...other, owner: person.owner, contractArtifacts });
      const { managerLifecycleUid } = other;
      const request = { ...args(manager), managerLifecycleUid, registrationProof };
      await unchanged(space, "permission-denied", () => person.ask<Operation>(operation, request));
    });

    it("wants the gate there and open, whatever the proof (R2)", async () => {
      const { space, manager, person } = scene();
      for (const change of [frozen(), frozen("retirement"), retired()]) {
        await during(space, gateKeyOf(manager), change, () => refused("failed-precondition"));
      }
      const unknown = { ...manager.envelope(), instanceId: newUid(systemPorts) };
      const { contractArtifacts = [] } = args(manager) as { contractArtifacts?: readonly unknown[] };
      const registrationProof = declarationProof({ ...unknown, owner: person.owner, contractArtifacts });
      const request = { ...args(manager), instanceId: unknown.instanceId, registrationProof };
      await unchanged(space, "failed-precondition", () => person.ask<Operation>(operation, request));
    });

    it("wants the gate to be the owner's (R3)", async () => {
      const { space, manager } = scene();
      const { principal } = await stored(space, gateKeyOf(manager));
      await during(space, gateKeyOf(manager), { principal: `${principal}x` as typeof principal }, () =>
        refused("permission-denied"),
      );
    });

    it("wants a registration behind the gate", async () => {
      const { space, manager } = scene();
      await during(space, gateKeyOf(manager), { registrationRevision: 0 }, () => refused("failed-precondition"));
    });
  });
}

function mintsForItsGranter<O extends Operation>(given: Issuing<O>): void {
  const { operation, proof, scene, before, args, moved = "conflict" } = given;

  /** Stops before the commit, does that, and gives what goes on. */
  async function meanwhile(manager: TestManager, what: () => Promise<unknown>): Promise<() => Promise<Output<O>>> {
    await before?.(manager);
    const pause = pauseCommit(`epcred.manager.${manager.instanceId}.`);
    const answer = manager.person.ask(operation, args(manager));
    answer.catch(() => {});
    await pause.reached;
    await what();
    return () => {
      pause.resume();
      return answer;
    };
  }

  /** A manager that may lose its granter. */
  async function expendable(name = `gone-${newUid(systemPorts)}`): Promise<TestManager> {
    const { space } = scene();
    return space.manager(await space.person(name, { scope: ["supervise"] }));
  }

  describe("the mint", () => {
    if (Object.hasOwn((operation.input as { properties?: object }).properties ?? {}, "accountPublicKey")) {
      it("is for this account (R1)", async () => {
        const { space, manager } = scene();
        const request = { ...(args(manager) as object), accountPublicKey: createKeyPair("account").public };
        await unchanged(space, "permission-denied", () => ask(manager, operation, request));
      });
    }

    it("is for the human who prepared the instance and for no other of the owner", async () => {
      const { space, manager } = scene();
      const ops = await space.person(manager.person.name, { actor: "ops", scope: ["supervise"] });
      const request = { ...(args(manager) as object), actor: ops.actor };
      const registrationProof = await proofK(space, manager, ops.actor);
      await unchanged(space, "permission-denied", () =>
        ops.ask<Operation>(operation, proof === "K" ? { ...request, registrationProof } : request),
      );
    });

    it("is made on a second run where the gate was only touched while signing", async () => {
      const { space, manager } = scene();
      const goOn = await meanwhile(manager, () => touchGate(space, manager));
      for (const { jwt } of signedIn(await goOn())) {
        expect((await rowOf(space, manager, jwt))?.value.state).toBe("active");
      }
    });

    it("is lost where the gate was frozen while signing", async () => {
      const { space, manager } = scene();
      const gate = await stored(space, gateKeyOf(manager));
      const goOn = await meanwhile(manager, () => space.put(gateKeyOf(manager), { ...gate, ...frozen() }));
      await unchanged(space, moved, goOn);
      await space.put(gateKeyOf(manager), gate);
    });

    it("is refused where the actor behind the manager was revoked while signing", async () => {
      const { space } = scene();
      const manager = await expendable();
      const key = actorRows.key(manager.person);
      const goOn = await meanwhile(manager, async () => {
        const { grantedBy, ...row } = await stored(space, key);
        const revokedAt = systemPorts.now();
        await space.put(key, { ...row, grantedBy, state: "revoked", revokedAt, revokedBy: grantedBy });
        await touchGate(space, manager);
      });
      await unchanged(space, "permission-denied", goOn);
    });

    it("is refused where another granter prepared the instance while signing", async () => {
      const { space } = scene();
      const manager = await expendable();
      const heir = await space.person(manager.person.name, { actor: "heir", scope: ["supervise"] });
      const goOn = await meanwhile(manager, () =>
        heir.ask(managerPrepare, {
          ...manager.envelope(),
          kind: "manager-service-authority",
          operation: "prepare",
          actor: heir.actor,
        }),
      );
      await unchanged(space, "permission-denied", goOn);
    });
  });
}

/** Proof K as the authority computes it, over these coordinates. */
export async function proofK(
  { secrets, space }: TestSpace,
  manager: Pick<TestManager, "person" | "envelope" | "coordinates">,
  actor: Actor,
  other: { readonly registrationRevision?: number; readonly processEpoch?: number } = {},
): Promise<Digest> {
  const { dataAccount } = await loadSecret(secrets, space, SECRET.serviceKeys);
  const { registrationRevision, processEpoch } = { ...manager.coordinates, ...other };
  const { instanceId, managerLifecycleUid, identities } = manager.envelope();
  const { owner } = manager.person;
  const of = { space, owner, actor, instanceId, managerLifecycleUid, identities, registrationRevision, processEpoch };
  return Digest.parse(currentRegistrationProof(of, dataAccount.signingSeed));
}

async function touchGate(space: TestSpace, manager: TestManager): Promise<void> {
  const gate = await space.store.read(gateKeyOf(manager));
  if (!gate) throw new Error("this manager has no gate");
  await space.store.commit([touch(gate)], ownWork(systemPorts, 5_000));
}

const signedIn = (answer: unknown): readonly { readonly jwt: string }[] =>
  Object.values((answer as { credentials: Record<string, { jwt: string }> }).credentials);

export const rowOf = (space: TestSpace, { instanceId }: { readonly instanceId: Uid }, jwt: string) =>
  space.store.read(epCredRows.key({ endpoint: MANAGER, instanceId, credentialId: credentialIdOf(jwt) }));

/** That a released credential stands on an active row that says whose it is and on whose strength. */
export async function expectRow(
  space: TestSpace,
  manager: TestManager,
  role: Role,
  signed: { readonly jwt: string; readonly exp: number },
  more: Partial<EpCred>,
): Promise<void> {
  const { person, instanceId } = manager;
  const { generation, processEpoch, registrationRevision, nameAuthorityRevision } = await stored(
    space,
    gateKeyOf(manager),
  );
  expect((await rowOf(space, manager, signed.jwt))?.value).toEqual({
    credentialId: credentialIdOf(signed.jwt),
    role,
    lifecycleUid: manager.uid,
    holderPrincipal: `${person.owner}.${ROLES[role].actor({ instanceId, actor: person.actor, ...more })}`,
    sourceChain: ["root"],
    grantedBy: { kind: "actor", owner: person.owner, actor: person.actor, lifecycleUid: person.uid },
    generation,
    state: "active",
    exp: signed.exp * 1_000,
    endpoint: "manager",
    processEpoch,
    registrationRevision,
    nameAuthorityRevision,
    ...more,
  });
}
