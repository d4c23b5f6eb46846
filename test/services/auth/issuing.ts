/**
 * What holds for every operation that issues, whatever it issues (operations §1 to §4): each test of one runs it.
 * A case is the operation's own good request with one thing wrong.
 */
import { describe, expect, it } from "vitest";
import { credentialIdOf } from "../../../shared/canonical.ts";
import type { Input, Operation, Output } from "../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { ROLES, type Role } from "../../../shared/credentials/roles.ts";
import type { ErrorCode } from "../../../shared/errors.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { currentRegistrationProof } from "../../../shared/proofs.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { type EpCred, epCredRows } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type EpGate, epGateRows } from "../../../shared/rows/gate.ts";
import { managerRows } from "../../../shared/rows/manager.ts";
import { loadSecret, SECRET } from "../../../shared/secrets/keys.ts";
import { touch } from "../../../shared/store/message.ts";
import { type Actor, EndpointLabel, type Uid } from "../../../shared/tokens.ts";
import { ownWork } from "../../../shared/work.ts";
import type { TestManager } from "../../kit/manager.ts";
import { pauseCommit } from "../../kit/pause.ts";
import type { TestSpace } from "../../kit/space.ts";
import { unchanged } from "../../kit/unchanged.ts";

export const MANAGER = EndpointLabel.parse("manager");
const once = { once: true } as const;

export interface Issuing<O extends Operation> {
  readonly operation: O;
  readonly proof: "K" | "U";
  space(): TestSpace;
  /** One that no case does away with. */
  manager(): TestManager;
  /** A good request of that manager's, with what must be there before. */
  args(manager: TestManager): Promise<Input<O>> | Input<O>;
}

/** All of it. */
export function itIssues<O extends Operation>(given: Issuing<O>): void {
  describe(`${given.operation.name}, as whatever issues`, () => {
    itKnowsItsCaller(given);
    itWantsTheRegistration(given);
    itIsFencedOnTheGate(given);
  });
}

type Good = Readonly<Record<string, unknown>>;

async function goodOf<O extends Operation>(given: Issuing<O>, manager = given.manager()): Promise<Good> {
  return (await given.args(manager)) as Good;
}

/** Asks on the manager's own connection. */
const ask = (manager: TestManager, operation: Operation, args: unknown) =>
  manager.client.call<Operation>(operation, args, once);

function itKnowsItsCaller<O extends Operation>(given: Issuing<O>): void {
  const { operation } = given;

  it.each<[string, Good]>([
    ["another actor", { actor: "other" }],
    ["another instance", { instanceId: newUid(systemPorts) }],
    ["another uid", { managerLifecycleUid: newUid(systemPorts) }],
    ["another space", { space: "other" }],
  ])("refuses a manager that names %s", async (_name, wrong) => {
    const args = { ...(await goodOf(given)), ...wrong };
    await unchanged(given.space(), "permission-denied", () => ask(given.manager(), operation, args));
  });

  it("refuses one nkey under two names", async () => {
    const args = await goodOf(given);
    const identities = args.identities as TestManager["keys"];
    const doubled = { ...args, identities: { ...identities, serve: identities.executor } };
    await unchanged(given.space(), "bad-request", () => ask(given.manager(), operation, doubled));
  });

  it("refuses a person without supervise, whatever else they hold", async () => {
    const other = await given.space().person("mallory", { actor: "m1", scope: ["spawn", "run", "admin"] });
    const args = { ...(await goodOf(given)), actor: other.actor };
    await unchanged(given.space(), "permission-denied", () => other.ask<Operation>(operation, args));
  });

  it("refuses another human of the owner than the one who prepared the instance", async () => {
    const [space, manager] = [given.space(), given.manager()];
    const ops = await space.person(manager.person.name, { actor: "ops", scope: ["supervise"] });
    const args = { ...(await goodOf(given)), actor: ops.actor };
    const proven = given.proof === "K" ? { ...args, registrationProof: await proofK(space, manager, ops.actor) } : args;
    await unchanged(space, "permission-denied", () => ops.ask<Operation>(operation, proven));
  });

  it("refuses without a login at the gateway", async () => {
    const args = await goodOf(given);
    await unchanged(given.space(), "unauthenticated", () =>
      given.space().gateway.call<Operation>(operation, args, once),
    );
  });
}

interface Wrong {
  readonly name: string;
  readonly code: ErrorCode;
  readonly args?: (manager: TestManager, space: TestSpace) => Promise<Good> | Good;
  readonly gate?: (gate: EpGate) => EpGate;
}

const OF_THE_GATE: readonly Wrong[] = [
  {
    name: "a gate frozen by a registration",
    code: "failed-precondition",
    gate: (gate) => ({ ...gate, state: "frozen", op: { opId: newUid(systemPorts), kind: "registration" } }),
  },
  {
    name: "a retired gate",
    code: "failed-precondition",
    gate: (gate) => ({ ...gate, state: "retired", op: { opId: newUid(systemPorts), kind: "retirement" } }),
  },
  {
    name: "a gate that another principal serves",
    code: "permission-denied",
    gate: (gate) => ({ ...gate, principal: `${gate.principal}x` as EpGate["principal"] }),
  },
];

const OF_K: readonly Wrong[] = [
  {
    name: "U in place of K",
    code: "permission-denied",
    args: (manager) => ({ registrationProof: manager.declaration() }),
  },
  {
    name: "K of an earlier registration",
    code: "permission-denied",
    args: async (manager, space) => ({
      registrationProof: await proofK(space, manager, manager.person.actor, { registrationRevision: 1 }),
    }),
  },
  {
    name: "K of an earlier registration under its own epoch",
    code: "permission-denied",
    args: async (manager, space) => ({
      registrationProof: await proofK(space, manager, manager.person.actor, { processEpoch: 7 }),
    }),
  },
];

/** Where the request says for which account and epoch it is. */
const OF_ACCOUNT: readonly Wrong[] = [
  {
    name: "another account",
    code: "permission-denied",
    args: () => ({ accountPublicKey: createKeyPair("account").public }),
  },
  {
    name: "another epoch",
    code: "conflict",
    args: ({ coordinates }) => ({ processEpoch: coordinates.processEpoch + 1 }),
  },
];

const OF_U: readonly Wrong[] = [
  { name: "K in place of U", code: "permission-denied", args: (manager) => ({ registrationProof: manager.proof }) },
  {
    name: "a gate that never registered",
    code: "failed-precondition",
    gate: (gate) => ({ ...gate, registrationRevision: 0 }),
  },
];

function itWantsTheRegistration<O extends Operation>(given: Issuing<O>): void {
  const { operation, proof } = given;
  const named = Object.keys((operation.input as { properties?: object }).properties ?? {});
  const cases = [
    ...OF_THE_GATE,
    ...(proof === "K" ? OF_K : OF_U),
    ...(named.includes("accountPublicKey") ? OF_ACCOUNT : []),
  ];
  it.each(cases)("refuses $name", async ({ code, args, gate }) => {
    const [space, manager] = [given.space(), given.manager()];
    const wrong = { ...(await goodOf(given)), ...(await args?.(manager, space)) };
    await withGate(space, manager, gate ?? ((same) => same), async () => {
      const refusal = await unchanged(space, code, () => ask(manager, operation, wrong));
      if (code !== "conflict") return;
      const { instanceId, coordinates } = manager;
      const detail = { kind: "ai.cotal.auth.incarnation", instanceId, epoch: coordinates.processEpoch };
      expect(refusal.details).toEqual([detail]);
    });
  });

  it("refuses an instance without a gate", async () => {
    const [space, manager] = [given.space(), given.manager()];
    const nowhere = await space.manager(manager.person, { upTo: "none" });
    const proofOf = proof === "U" ? nowhere.declaration() : manager.proof;
    const args = { ...(await goodOf(given)), ...nowhere.envelope(), registrationProof: proofOf };
    await unchanged(space, "failed-precondition", () => manager.person.ask<Operation>(operation, args));
  });
}

function itIsFencedOnTheGate<O extends Operation>(given: Issuing<O>): void {
  const { operation } = given;

  /** Stops before the commit, does that, goes on. */
  async function meanwhile(manager: TestManager, what: () => Promise<unknown>): Promise<() => Promise<Output<O>>> {
    const args = await goodOf(given, manager);
    const pause = pauseCommit(`epcred.manager.${manager.instanceId}.`);
    const answer = manager.person.ask<Operation>(operation, args);
    answer.catch(() => {});
    await pause.reached;
    await what();
    return () => {
      pause.resume();
      return answer as Promise<Output<O>>;
    };
  }

  it("issues on the second run where the gate was only touched while signing", async () => {
    const [space, manager] = [given.space(), given.manager()];
    const goOn = await meanwhile(manager, () => touchGate(space, manager));
    const answer = await goOn();
    for (const { jwt } of signedIn(answer)) expect((await rowOf(space, manager, jwt))?.value.state).toBe("active");
  });

  it("refuses with conflict where the gate was frozen while signing", async () => {
    const [space, manager] = [given.space(), given.manager()];
    const original = await gateOf(space, manager);
    const goOn = await meanwhile(manager, () =>
      space.put(original.key, {
        ...original.value,
        state: "frozen",
        op: { opId: newUid(systemPorts), kind: "registration" },
      }),
    );
    await unchanged(space, "conflict", goOn);
    await space.put(original.key, original.value);
  });

  it("refuses where the actor behind the manager was revoked while signing", async () => {
    const space = given.space();
    const manager = await space.manager(await space.person(`gone-${newUid(systemPorts)}`, { scope: ["supervise"] }));
    const goOn = await meanwhile(manager, async () => {
      const row = await manager.person.row();
      if (!row) throw new Error("no such actor");
      const { owner, actor } = manager.person;
      const now = systemPorts.now();
      await space.put(actorRows.key({ owner, actor }), {
        ...row.value,
        state: "revoked",
        revokedAt: now,
        revokedBy: row.value.grantedBy,
      });
      await touchGate(space, manager);
    });
    await unchanged(space, "permission-denied", goOn);
  });

  it("refuses where another granter prepared the instance while signing", async () => {
    const space = given.space();
    const name = `heir-${newUid(systemPorts)}`;
    const manager = await space.manager(await space.person(name, { scope: ["supervise"] }));
    const heir = await space.person(name, { actor: "heir", scope: ["supervise"] });
    const goOn = await meanwhile(manager, async () => {
      const key = managerRows.key({ instanceId: manager.instanceId });
      const row = await space.store.read(key);
      if (!row) throw new Error("no such manager");
      const { owner, actor, uid: lifecycleUid } = heir;
      await space.put(key, { ...row.value, grantedBy: { kind: "actor", owner, actor, lifecycleUid } });
      await touchGate(space, manager);
    });
    await unchanged(space, "permission-denied", goOn);
  });
}

/** Proof K as the authority computes it, over these coordinates. */
export async function proofK(
  { secrets, space }: TestSpace,
  manager: Pick<TestManager, "person" | "envelope" | "coordinates">,
  actor: Actor,
  other: { readonly registrationRevision?: number; readonly processEpoch?: number } = {},
): Promise<string> {
  const { dataAccount } = await loadSecret(secrets, space, SECRET.serviceKeys);
  const { registrationRevision, processEpoch } = { ...manager.coordinates, ...other };
  const { instanceId, managerLifecycleUid, identities } = manager.envelope();
  const { owner } = manager.person;
  const of = { space, owner, actor, instanceId, managerLifecycleUid, identities, registrationRevision, processEpoch };
  return currentRegistrationProof(of, dataAccount.signingSeed);
}

const gateKey = ({ instanceId }: { readonly instanceId: Uid }) => epGateRows.key({ endpoint: MANAGER, instanceId });

export async function gateOf(space: TestSpace, manager: { readonly instanceId: Uid }): Promise<Entry<EpGate>> {
  const gate = await space.store.read(gateKey(manager));
  if (!gate) throw new Error("this manager has no gate");
  return gate;
}

/** Runs something while the gate is another one. */
export async function withGate(
  space: TestSpace,
  manager: TestManager,
  change: (gate: EpGate) => EpGate,
  work: () => Promise<unknown>,
): Promise<void> {
  const { key, value } = await gateOf(space, manager);
  await space.put(key, change(value));
  try {
    await work();
  } finally {
    await space.put(key, value);
  }
}

export async function touchGate(space: TestSpace, manager: TestManager): Promise<void> {
  await space.store.commit([touch(await gateOf(space, manager))], ownWork(systemPorts, 5_000));
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
  const gate = await gateOf(space, manager);
  const { generation, processEpoch, registrationRevision, nameAuthorityRevision } = gate.value;
  expect((await rowOf(space, manager, signed.jwt))?.value).toEqual({
    credentialId: credentialIdOf(signed.jwt),
    role,
    lifecycleUid: manager.uid,
    holderPrincipal: `${person.owner}.${ROLES[role].actor({ instanceId, ...more })}`,
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
