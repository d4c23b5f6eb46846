/** What both assigning operations refuse and do alike (operations §11). */
import { describe, expect, it } from "vitest";
import type { Operation } from "../../../../shared/contracts/operation.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../../shared/ports.ts";
import { type Assignment, assignmentRows } from "../../../../shared/rows/assignment.ts";
import { type EpGate, epGateRows } from "../../../../shared/rows/gate.ts";
import { Actor, type Owner, principalOf, type Uid } from "../../../../shared/tokens.ts";
import { pauseCommit } from "../../../kit/pause.ts";
import type { TestSpace } from "../../../kit/space.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { MANAGER, provisioned, retired, stored } from "../scene.ts";

interface Args {
  readonly instanceId: Uid;
  readonly lifecycleUid: Uid;
  readonly owner: Owner;
  readonly state: string;
  readonly expectedRevision: number;
}

export interface Kind {
  readonly operation: Operation;
  readonly ended: "revoked" | "ended";
  space(): TestSpace;
  /** A good first assignment of a fresh instance. */
  args(): Promise<Args>;
  /** So that another instance may be assigned. */
  end(instanceId: Uid): Promise<void>;
}

export async function assign(
  { operation, space }: Pick<Kind, "operation" | "space">,
  args: object,
): Promise<Assignment> {
  const answer = await space().operator.call<Operation>(operation, args, { once: true });
  return (answer as { assignment: Assignment }).assignment;
}

export function itAssigns(kind: Kind): void {
  const { operation, ended } = kind;
  const refused = (code: ErrorCode, args: object) => unchanged(kind.space(), code, () => assign(kind, args));
  const gateKey = (instanceId: Uid) => epGateRows.key({ endpoint: MANAGER, instanceId });
  const gateOf = ({ owner, instanceId }: Args): EpGate => ({
    state: "open",
    generation: 1,
    processEpoch: 0,
    registrationRevision: 7,
    nameAuthorityRevision: 0,
    principal: principalOf(owner, Actor.parse(`manager_serve_${instanceId}`)),
  });

  describe(`${operation.name}, as both`, () => {
    it("is the operator's alone (C2)", async () => {
      const space = kind.space();
      const args = await kind.args();
      const operator = await provisioned(space, "operator");
      for (const caller of [
        await provisioned(space, "platform_host"),
        await provisioned(space, "gateway_loopback"),
        { ...operator, uid: newUid(systemPorts) },
        { owner: args.owner, actor: Actor.parse("cli"), uid: newUid(systemPorts) },
        { owner: args.owner, actor: Actor.parse(`manager_${args.instanceId}`), uid: args.lifecycleUid },
      ]) {
        await unchanged(space, "permission-denied", () =>
          space.clientAs(caller).call<Operation>(operation, args, { once: true }),
        );
      }
      await refused("bad-request", { ...args, space: "demo" });
      await refused("bad-request", { ...args, owner: "local" });
      await refused("bad-request", { ...args, state: "gone" });
    });

    it("counts its writes, and answers a repeat without another", async () => {
      const space = kind.space();
      const args = await kind.args();
      const first = await assign(kind, args);
      expect(first).toMatchObject({
        v: 1,
        space: "demo",
        accountPublicKey: await space.dataAccount(),
        owner: args.owner,
        instanceId: args.instanceId,
        lifecycleUid: args.lifecycleUid,
        assignmentRevision: 1,
        state: "assigned",
      });
      expect(await stored(space, assignmentRows.key(args))).toEqual(first);
      const second = { ...args, expectedRevision: 1 };
      expect((await assign(kind, second)).assignmentRevision).toBe(2);
      const before = await sequences(space);
      expect((await assign(kind, second)).assignmentRevision).toBe(2);
      expect(await sequences(space)).toEqual(before);
      await refused("conflict", args);
      await kind.end(args.instanceId);
    });

    it("wants the stored revision, and the same kind, owner and lifecycle (check 1)", async () => {
      const args = await kind.args();
      await refused("conflict", { ...args, expectedRevision: 1 });
      await assign(kind, args);
      const next = { ...args, expectedRevision: 1 };
      await refused("conflict", { ...args, expectedRevision: 2 });
      await refused("conflict", { ...next, lifecycleUid: newUid(systemPorts) });
      await refused("conflict", {
        ...next,
        owner: `${args.owner.slice(0, -1)}${args.owner.endsWith("7") ? "6" : "7"}`,
      });
      await kind.end(args.instanceId);
    });

    it("never comes back from its end, which a repeat still answers (check 1)", async () => {
      const args = await kind.args();
      await assign(kind, args);
      const ending = { ...args, state: ended, expectedRevision: 1 };
      expect((await assign(kind, ending)).state).toBe(ended);
      expect((await assign(kind, ending)).state).toBe(ended);
      await refused("conflict", { ...args, expectedRevision: 2 });
      await refused("conflict", { ...ending, expectedRevision: 2 });
    });

    it("wants a gate that exists to be that owner's (check 2)", async () => {
      const args = await kind.args();
      const foreign = principalOf(args.owner, Actor.parse(`manager_serve_${newUid(systemPorts)}`));
      await kind.space().put(gateKey(args.instanceId), { ...gateOf(args), principal: foreign });
      await refused("conflict", args);
    });

    it("touches a gate that exists, in its own commit, unless that is retired", async () => {
      const space = kind.space();
      const args = await kind.args();
      const key = gateKey(args.instanceId);
      const revision = await space.put(key, gateOf(args));
      await assign(kind, args);
      const [gate, row] = [await space.store.read(key), await space.store.read(assignmentRows.key(args))];
      expect(gate?.value).toEqual(gateOf(args));
      expect(gate?.revision).toBeGreaterThan(revision);
      expect((gate?.revision ?? 0) - (row?.revision ?? 0)).toBeLessThanOrEqual(2);
      const last = await space.put(key, { ...gateOf(args), ...retired() });
      await kind.end(args.instanceId);
      expect((await space.store.read(key))?.revision).toBe(last);
    });

    it("is decided again where the gate moved meanwhile, and touches one that came meanwhile", async () => {
      const space = kind.space();
      for (const before of [true, false]) {
        const args = await kind.args();
        const key = gateKey(args.instanceId);
        if (before) await space.put(key, gateOf(args));
        const pause = pauseCommit(`assignment.${args.instanceId}`);
        const assigned = assign(kind, args);
        await pause.reached;
        const revision = await space.put(key, gateOf(args));
        pause.resume();
        expect((await assigned).assignmentRevision).toBe(1);
        expect((await space.store.read(key))?.revision).toBeGreaterThan(revision);
        await kind.end(args.instanceId);
      }
    });

    it("is written by one of two who write it at once", async () => {
      const args = await kind.args();
      const other = { ...args, lifecycleUid: newUid(systemPorts) };
      const pause = pauseCommit(`assignment.${args.instanceId}`);
      const late = assign(kind, other).catch((error: { code: string }) => error.code);
      const twin = await pause.reached.then(() => assign(kind, args));
      pause.resume();
      expect(await late).toBe("conflict");
      expect(await stored(kind.space(), assignmentRows.key(args))).toEqual(twin);
      await kind.end(args.instanceId);
    });
  });
}
