/** What every operation on a manager's behalf refuses before its own checks: C2 to C5, and R (operations §1, §3). */
import { describe, expect, it } from "vitest";
import type { Operation } from "../../../shared/contracts/operation.ts";
import type { AuthorityError, ErrorCode } from "../../../shared/errors.ts";
import { newNonce, newUid, systemPorts } from "../../../shared/ports.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { Actor, Hex64, Owner, Scope, type Triple } from "../../../shared/tokens.ts";
import type { TestManager } from "../../kit/manager.ts";
import { unchanged } from "../../kit/unchanged.ts";
import { ask, during, frozen, gateKeyOf, provisioned, retired, type Scene, stored } from "./scene.ts";

/** A whole request of the operation by this manager. */
export type ArgsOf = (manager: TestManager) => object;

const refusing =
  (scene: () => Scene, operation: Operation, argsOf: ArgsOf) =>
  (code: ErrorCode, change: object = {}): Promise<AuthorityError> => {
    const { space, manager } = scene();
    return unchanged(space, code, () => ask(manager, operation, { ...argsOf(manager), ...change }));
  };

/** Of an operation that asks for the scope `supervise`. */
export function refusesStrangers(scene: () => Scene, operation: Operation, argsOf: ArgsOf): void {
  const refused = refusing(scene, operation, argsOf);

  describe("the common checks", () => {
    it("admit nobody but a person through a gateway and the manager itself (C2)", async () => {
      const { space, person, manager } = scene();
      const args = argsOf(manager) as never;
      const refusedAs = (code: ErrorCode, caller: Triple) =>
        unchanged(space, code, () => space.clientAs(caller).call(operation, args, { once: true }));
      const own = { owner: person.owner, actor: Actor.parse(`manager_${manager.instanceId}`), uid: manager.uid };
      const operator = await provisioned(space, "operator");
      await refusedAs("permission-denied", operator);
      await refusedAs("permission-denied", { ...operator, uid: newUid(systemPorts) });
      await refusedAs("permission-denied", await provisioned(space, "platform_host"));
      await refusedAs("permission-denied", person);
      await refusedAs("permission-denied", { ...own, actor: Actor.parse(`manager_serve_${manager.instanceId}`) });
      await refusedAs("permission-denied", { ...own, actor: Actor.parse(`manager_exec_${manager.instanceId}`) });
      await refusedAs("permission-denied", { ...own, actor: Actor.parse(`manager_${newUid(systemPorts)}`) });
      await refusedAs("permission-denied", { ...own, owner: Owner.parse(`u_${"z".repeat(26)}`) });
      await refusedAs("expired", { ...own, uid: newUid(systemPorts) });
      await refusedAs("unauthenticated", await provisioned(space, "gateway_loopback"));
      await unchanged(space, "unauthenticated", () =>
        space.gateway.call(operation, args, { auth: "x.y.z", once: true }),
      );
    });

    it("want a body that names the manager of the subject, or the one that was prepared (C2)", async () => {
      await refused("permission-denied", { actor: "another" });
      await refused("permission-denied", { instanceId: newUid(systemPorts) });
      await refused("permission-denied", { managerLifecycleUid: newUid(systemPorts) });
      const { space, person, manager } = scene();
      const other = { ...argsOf(manager), managerLifecycleUid: newUid(systemPorts) } as never;
      await unchanged(space, "permission-denied", () => person.ask(operation, other));
    });

    it("want an interactive, active granter with the scope supervise, which no other scope implies (C2, C3)", async () => {
      const { space, person, manager } = scene();
      const throughGateway = () => person.ask(operation, argsOf(manager) as never);
      for (const change of [
        { scope: ["admin", "spawn", "run"].map((scope) => Scope.parse(scope)) },
        { state: "revoked" as const },
        { kind: "managed" as const, tokenHash: Hex64.parse("0".repeat(64)) },
      ]) {
        await during(space, actorRows.key(person), change, async () => {
          await refused("permission-denied");
          await unchanged(space, "permission-denied", throughGateway);
        });
      }
      await during(space, actorRows.key(person), { lifecycleUid: newUid(systemPorts) }, () =>
        refused("permission-denied"),
      );
    });

    it("want distinct nkeys and this space (C4, C5)", async () => {
      const { identities } = scene().manager.envelope();
      await refused("bad-request", { identities: { ...identities, serve: identities.executor } });
      await refused("permission-denied", { space: "another" });
    });

    it("take no member that is not declared, and none that is malformed (C1)", async () => {
      await refused("bad-request", { owner: scene().person.owner });
      await refused("bad-request", { requestId: newNonce(systemPorts).slice(0, 21) });
    });
  });
}

/** Of an operation that carries K. */
export function refusesUnregistered(scene: () => Scene, operation: Operation, argsOf: ArgsOf): void {
  const refused = refusing(scene, operation, argsOf);

  describe("the registration check", () => {
    it("wants the gate there and open (R2)", async () => {
      const { space, manager, person } = scene();
      for (const change of [frozen(), frozen("retirement"), retired()]) {
        await during(space, gateKeyOf(manager), change, () => refused("failed-precondition"));
      }
      const unknown = { ...argsOf(manager), instanceId: newUid(systemPorts) } as never;
      await unchanged(space, "failed-precondition", () => person.ask(operation, unknown));
    });

    it("wants the gate to be the owner's (R3)", async () => {
      const { space, manager } = scene();
      const bob = await space.person(`bob-${manager.instanceId}`, { scope: ["supervise"] });
      await unchanged(space, "permission-denied", () => bob.ask(operation, argsOf(manager) as never));
    });

    const { properties = {} } = operation.input as { properties?: object };
    const carried = ["serveEpoch", "processEpoch"].find((member) => Object.hasOwn(properties, member));
    if (carried !== undefined) {
      it("wants the gate's epoch, whatever the proof, and names it (R4)", async () => {
        const { manager } = scene();
        const { instanceId } = manager;
        const { processEpoch: epoch } = manager.coordinates;
        for (const registrationProof of [manager.proof, manager.declaration()]) {
          const error = await refused("conflict", { [carried]: epoch + 1, registrationProof });
          expect(error.details).toEqual([{ kind: "ai.cotal.auth.incarnation", instanceId, epoch }]);
        }
      });
    }

    it("wants K: no declaration, none of another registration, none over other identities (R5)", async () => {
      const { space, manager } = scene();
      const { registrationRevision } = await stored(space, gateKeyOf(manager));
      await refused("permission-denied", { registrationProof: manager.declaration() });
      await during(space, gateKeyOf(manager), { registrationRevision: registrationRevision + 1 }, () =>
        refused("permission-denied"),
      );
      const { identities } = manager.envelope();
      const changed = { ...identities, serve: identities.executor, executor: identities.serve };
      await refused("permission-denied", { identities: changed });
    });
  });
}
