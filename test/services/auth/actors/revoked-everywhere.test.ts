import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sha256Hex } from "../../../../shared/canonical.ts";
import type { AuthorityClient } from "../../../../shared/client.ts";
import { actorRenew } from "../../../../shared/contracts/auth/actors/actor-renew.ts";
import { actorRevoke } from "../../../../shared/contracts/auth/actors/actor-revoke.ts";
import { agentEnroll } from "../../../../shared/contracts/auth/agents/enroll.ts";
import { managerRenew } from "../../../../shared/contracts/auth/manager/renew.ts";
import { managerRenewRun } from "../../../../shared/contracts/auth/manager/renew-run.ts";
import { managerRenewStanding } from "../../../../shared/contracts/auth/manager/renew-standing.ts";
import { exchangeAgent } from "../../../../shared/contracts/exchange/exchange-agent.ts";
import { exchangeUser } from "../../../../shared/contracts/exchange/exchange-user.ts";
import type { Operation } from "../../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import { AuthorityError } from "../../../../shared/errors.ts";
import { actorRows } from "../../../../shared/rows/actor.ts";
import { Actor, type Uid } from "../../../../shared/tokens.ts";
import type { Host } from "../../../kit/hosting.ts";
import { login } from "../../../kit/logins.ts";
import type { TestManager } from "../../../kit/manager.ts";
import type { Person } from "../../../kit/person.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { hangUp } from "../connections.ts";
import { requestId } from "../lifecycles.ts";
import { makeMailboxes } from "../mailboxes.ts";
import { admittedRun, createJournals, heldBy, writeStatus } from "../runs/runs.ts";
import { proven } from "../scene.ts";

const SECRET = "the agent's secret";
const REPLICAS = ["auth", "exchange", "callout"] as const;

let space: TestSpace;
let hosts: readonly Host[];
let alice: Person;
let manager: TestManager;
let agent: { readonly actor: Actor; readonly uid: Uid };
beforeAll(async () => {
  const gateway = { loopbackPort: 7_777, publicPort: 7_778, publicUrl: "https://authority.example" };
  space = await startSpace({ services: ["custodian", ...REPLICAS], authTimeoutS: 1, settings: { gateway } });
  hosts = [...space.hosts, await space.host(REPLICAS, () => ({ instance: "2" }))];
  await makeMailboxes(space);
  await createJournals(space);
  const granted = { scope: ["supervise", "run"], allowSubscribe: ["team.>"], allowPublish: ["team.>"] };
  alice = await space.person("alice", granted);
  manager = await space.manager(alice);
  const actor = Actor.parse("coder");
  const tokenHash = sha256Hex(SECRET) as never;
  const target = { actor, tokenHash, capabilities: ["run"], allowSubscribe: ["team.build"], allowPublish: [] } as never;
  await manager.client.call(agentEnroll, { ...proven(manager, "manager-managed-agent-enrollment"), target });
  const row = await space.store.read(actorRows.key({ owner: alice.owner, actor }));
  if (!row) throw new Error("no agent");
  await hangUp(manager); // they would come back for as long as their JWTs are good
  agent = { actor, uid: row.value.lifecycleUid };
});
afterAll(() => space.stop());

/** The code of its refusal, or `ok`. */
const outcome = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "ok",
    (error: unknown) => (error instanceof AuthorityError ? error.code : String(error)),
  );
const every = (outcomes: readonly string[]): string[] => [...new Set(outcomes)];
const many = (count: number, work: () => Promise<unknown>): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, () => outcome(work())));

/** No more at once than one person has places. */
async function rounds(count: number, atOnce: number, work: () => Promise<unknown>): Promise<string[]> {
  const outcomes: string[] = [];
  for (let round = 0; round < count; round += 1) outcomes.push(...(await many(atOnce, work)));
  return outcomes;
}

const exchanging = (name: string, actor: Actor) =>
  space.gateway.call(exchangeUser, { actor }, { auth: login(name), once: true });
const agentExchanging = () =>
  space.gateway.call(exchangeAgent, { owner: alice.owner, actor: agent.actor, actorToken: SECRET }, { once: true });

/** How many lines of a host's log since some time fit. */
const said = (lines: readonly string[], ...parts: readonly string[]): number =>
  lines.filter((line) => parts.every((part) => line.includes(part))).length;

describe("a revoked actor", () => {
  it("was admitted by every replica before", async () => {
    expect(every(await rounds(3, 8, () => exchanging("alice", alice.actor)))).toEqual(["ok"]);
    expect(every(await many(8, agentExchanging))).toEqual(["ok"]);
    const token = await alice.bearer();
    expect(every(await many(20, async () => (await alice.connectWith(token)).connection.close()))).toEqual(["ok"]);
  });

  it("is refused by every exchange and every callout from the moment that its row is revoked", async () => {
    const token = await alice.bearer();
    const before = hosts.map(({ lines }) => lines.length);
    const row = actorRows.key({ owner: alice.owner, actor: alice.actor });
    const { owner, actor, uid } = alice;
    const revoking = space.operator.call(actorRevoke, { requestId: requestId(), owner, actor, lifecycleUid: uid });
    revoking.catch(() => {});
    // Its retirement is still under way: the commit alone denies.
    while ((await space.store.read(row))?.value.state !== "revoked");

    const [byAlice = [], byAgent = [], connects = []] = await Promise.all([
      rounds(4, 5, () => exchanging("alice", alice.actor)),
      rounds(4, 2, agentExchanging),
      many(20, () => alice.connectWith(token)),
    ]);
    expect([byAlice, byAgent, connects].map(every)).toEqual([
      ["permission-denied"],
      ["permission-denied"],
      ["unauthenticated"],
    ]);
    for (const [at, { lines }] of hosts.entries()) {
      const since = lines.slice(before[at]);
      expect(said(since, '"decision":"denied"', '"code":"permission-denied"')).toBeGreaterThan(0);
      expect(said(since, '"op":"exchange-user"', '"code":"permission-denied"')).toBeGreaterThan(0);
    }
    expect(await revoking).toMatchObject({ revoked: true, retired: true });
  });

  it("leaves nothing that was issued on its behalf to be renewed, on either auth", async () => {
    const run = { ...heldBy(manager, await admittedRun(space, manager)) };
    await writeStatus(space, run);
    const authority = { kind: "manager-service-authority" as const };
    const driverId = createKeyPair("user").public as never;
    const mediatorId = createKeyPair("user").public as never;
    const { owner } = alice;
    const tries: [Operation, object][] = [
      [managerRenew, { ...manager.envelope(), ...authority, operation: "renew", registrationProof: manager.proof }],
      [managerRenewStanding, { ...manager.proven(), ...authority, operation: "renewStandingBundle" }],
      [
        managerRenewRun,
        { ...manager.proven(), ...authority, operation: "renewRunDriver", run: { ...run, driverId, mediatorId } },
      ],
      [actorRenew, { kind: "actor-renew", requestId: requestId(), owner, actor: agent.actor, lifecycleUid: agent.uid }],
    ];
    const asManager = space.clientAs({ owner, actor: Actor.parse(`manager_${manager.instanceId}`), uid: manager.uid });
    const ask = (client: AuthorityClient, [operation, args]: [Operation, object]) =>
      client.call<Operation>(operation, args, { once: true });
    for (const one of tries) {
      const codes = await Promise.all([
        ...Array.from({ length: 6 }, () => outcome(ask(asManager, one))),
        outcome(alice.ask<Operation>(one[0], one[1])),
      ]);
      expect([one[0].name, every(codes)]).toEqual([one[0].name, ["permission-denied"]]);
    }
    // Not by the operator either: the agent's parent covers it no more.
    expect(await outcome(space.operator.call<Operation>(actorRenew, tries.at(-1)?.[1] ?? {}, { once: true }))).toBe(
      "permission-denied",
    );
    expect(every(await many(8, agentExchanging))).toEqual(["permission-denied"]);
  });
});
