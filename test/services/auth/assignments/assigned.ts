/** Instances that the operator assigned, and the host that asks for them through a door. */
import type { AuthorityClient, CallOptions } from "../../../../shared/client.ts";
import { platformAssign } from "../../../../shared/contracts/auth/assignments/platform-assign.ts";
import { platformControl } from "../../../../shared/contracts/auth/assignments/platform-control.ts";
import { supervisorAssign } from "../../../../shared/contracts/auth/assignments/supervisor-assign.ts";
import { supervisorAuthority } from "../../../../shared/contracts/auth/assignments/supervisor-authority.ts";
import type { Input, Operation } from "../../../../shared/contracts/operation.ts";
import { newNonce, newUid, systemPorts } from "../../../../shared/ports.ts";
import { type Assignment, assignmentRows } from "../../../../shared/rows/assignment.ts";
import { Actor, Owner, type RequestId, type Uid } from "../../../../shared/tokens.ts";
import { type ManagerOptions, startManager, type TestManager } from "../../../kit/manager.ts";
import type { Person } from "../../../kit/person.ts";
import type { TestSpace } from "../../../kit/space.ts";

export const PLATFORM = Owner.parse(`p_${"p".repeat(26)}`);
export const requestId = (): RequestId => newNonce(systemPorts) as string as RequestId;

export type PlatformArgs = Input<typeof platformAssign>;
export type SupervisorArgs = Input<typeof supervisorAssign>;

export const platformArgs = (more: Partial<PlatformArgs> = {}): PlatformArgs => ({
  requestId: requestId(),
  owner: PLATFORM,
  instanceId: newUid(systemPorts),
  lifecycleUid: newUid(systemPorts),
  state: "assigned",
  expectedRevision: 0,
  ...more,
});

export const supervisorArgs = (owner: Owner, more: Partial<SupervisorArgs> = {}): SupervisorArgs => ({
  requestId: requestId(),
  owner,
  instanceId: newUid(systemPorts),
  lifecycleUid: newUid(systemPorts),
  state: "assigned",
  expiresAt: Date.now() + 3_600_000,
  expectedRevision: 0,
  ...more,
});

export const assignmentOf = async ({ store }: TestSpace, instanceId: Uid): Promise<Assignment | undefined> =>
  (await store.read(assignmentRows.key({ instanceId })))?.value;

export interface Door {
  readonly space: TestSpace;
  readonly host: AuthorityClient;
  readonly kind: "platform" | "supervisor";
  readonly owner: Owner;
}

/** The body of a door's request; `change` is laid over it. */
export async function doorArgs(door: Door, request: object, change: object = {}): Promise<object> {
  const { instanceId } = request as { instanceId?: Uid };
  const row = instanceId === undefined ? undefined : await assignmentOf(door.space, instanceId);
  return {
    v: 1,
    kind: door.kind === "platform" ? "platform-control-authority" : "platform-supervisor-authority",
    space: door.space.space,
    accountPublicKey: await door.space.dataAccount(),
    ...(door.kind === "supervisor" ? { owner: door.owner } : {}),
    assignmentRevision: row?.assignmentRevision ?? 1,
    request,
    ...change,
  };
}

/** Asks through the door, without repeats. */
export async function through(
  door: Door,
  request: object,
  change: object = {},
  options: CallOptions = {},
): Promise<unknown> {
  const operation: Operation = door.kind === "platform" ? platformControl : supervisorAuthority;
  const args = await doorArgs(door, request, change);
  return door.host.call(operation, args as never, { once: true, ...options });
}

/** Whoever a manager under an assignment belongs to: what a person would ask, the host asks through the door. */
function holderOf(door: Door): Person {
  const nobody = (): never => {
    throw new Error("an assignment has no login");
  };
  return {
    owner: door.owner,
    actor: Actor.parse("cli"),
    uid: newUid(systemPorts),
    name: door.kind,
    row: async () => undefined,
    idToken: nobody,
    ask: async (_operation, args, options) => (await through(door, args as object, {}, options)) as never,
    bearer: nobody,
    connect: nobody,
    connectWith: nobody,
    callerOf: nobody,
  };
}

/** A manager whose instance is assigned before its first step. */
export async function assignedManager(
  door: Door,
  options: ManagerOptions & { readonly assign?: Partial<PlatformArgs & SupervisorArgs> } = {},
): Promise<TestManager> {
  const { assign = {}, upTo = "activate", ...rest } = options;
  const manager = await startManager(door.space, holderOf(door), { ...rest, upTo: "none" });
  const of = { instanceId: manager.instanceId, lifecycleUid: manager.uid, ...assign };
  const { space } = door;
  if (door.kind === "platform") await space.operator.call(platformAssign, platformArgs({ owner: door.owner, ...of }));
  else await space.operator.call(supervisorAssign, supervisorArgs(door.owner, of));
  for (const step of ["prepare", "publish", "register", "activate"] as const) {
    if (upTo === "none") break;
    await manager[step]();
    if (step === upTo) break;
  }
  return manager;
}
