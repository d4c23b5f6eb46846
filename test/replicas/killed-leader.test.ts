/**
 * Three brokers with every stream on all of them, two replicas of each service. The broker that leads the authority's
 * stream is killed under a load of acknowledged writes and of reads: that costs seconds of `unavailable`, no
 * acknowledged commit and no wrong answer. Started again, it has everything that was written without it.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { managerRenew } from "../../shared/contracts/auth/manager/renew.ts";
import type { Operation } from "../../shared/contracts/operation.ts";
import { interactiveRetireOpId } from "../../shared/credentials/roles.ts";
import { isAuthorityError } from "../../shared/errors.ts";
import { systemPorts } from "../../shared/ports.ts";
import { violations } from "../chaos/invariants.ts";
import type { Broker } from "../kit/broker.ts";
import type { TestManager } from "../kit/manager.ts";
import type { Person } from "../kit/person.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { renewal } from "../races/mixed-requests.ts";
import { credentialStates, type Lifecycle, named, rowsOf } from "../services/auth/lifecycles.ts";
import { gateKeyOf, stored } from "../services/auth/scene.ts";
import { connects, grants, grantTo, type Kind, lists, Promised, renews, WrongAnswer } from "./day.ts";
import { broken, credentialIds } from "./ledger.ts";
import { Load, type Sent } from "./load.ts";
import { leaderOf, makeLeader, missing } from "./streams.ts";

const AT_ONCE = 2;
const AFTERWARDS = 10;
/** No longer than it takes to hear that nobody leads, or what hangs would hide who is served again. */
const ONCE = { deadlineMs: 3_000, once: true };
const PATIENT = { deadlineMs: 45_000, once: true };
const WAIT = { timeout: 60_000, interval: 100 };
const ports = systemPorts;

type Asked = Exclude<Kind, "attempt" | "exchange">;

let space: TestSpace;
let manager: TestManager;
let gateBefore: unknown;
let issuedBefore: Set<string>;
/** Whom the operator revokes while a server is missing, and that person's manager. */
let leaving: Person;
let left: TestManager;
let load: Load<Asked>;
let killed: Broker;
const promised = new Promised();

beforeAll(async () => {
  space = await startSpace({
    services: ["custodian", "auth", "exchange", "callout"],
    replicas: 2,
    cluster: true,
    authTimeoutS: 3,
  });
  const scope = ["supervise", "run"];
  const person = await space.person("alice", { scope });
  leaving = await space.person("bob", { scope });
  manager = await space.manager(person, { upTo: "activate" });
  left = await space.manager(leaving, { upTo: "activate" });
  gateBefore = await space.store.read(gateKeyOf(manager));
  issuedBefore = await credentialIds(space, manager);
  const asking = { space, person, manager, promised, once: ONCE };
  const bearer = await person.bearer();
  const requests = {
    connect: connects(asking, bearer),
    renew: renews(asking),
    grant: grants(asking),
    list: lists(asking),
  };
  load = new Load<Asked>(requests, AT_ONCE);
  await load.succeeds(AFTERWARDS);
}, 90_000);

afterAll(async () => {
  await load?.stop();
  await space?.stop();
});

const described = ({ kind, failure }: Sent<Asked>): string =>
  `${kind}: ${isAuthorityError(failure) ? `${failure.code} ${failure.outcome} ${failure.message}` : failure}`;

/** What may be answered while nobody leads. The broker tells a client that it does not let in no more than that. */
const isUnavailable = ({ kind, failure }: Sent<Asked>): boolean =>
  isAuthorityError(failure, "unavailable") || (kind === "connect" && isAuthorityError(failure, "unauthenticated"));

const retiring = (): Lifecycle => ({ ...leaving, opId: interactiveRetireOpId(leaving.uid) });

const revoke = (options: typeof PATIENT) => space.operator.call(actorRevoke, named(leaving), options);

describe("the leader's broker, killed under load", { timeout: 120_000 }, () => {
  it("costs seconds of `unavailable`, until another one leads", async () => {
    const leader = await leaderOf(space, "auth");
    killed = space.brokers.find(({ name }) => name === leader) ?? space.broker;
    expect(killed.name).toBe(leader);
    const at = ports.monotonic();
    await killed.kill("SIGKILL");
    await load.succeeds(AFTERWARDS, at);
    await expect.poll(() => leaderOf(space, "auth"), WAIT).not.toBe(leader);

    const back = (["connect", "renew", "grant", "list"] as const).map((kind) => {
      const first = load.sent.find(
        (one) => one.kind === kind && (one.endedAt ?? 0) > at && one.startedAt > at && !one.failure,
      );
      return `${kind} after ${Math.round((first?.endedAt ?? at) - at)} ms`;
    });
    console.info(`served again: ${back.join(", ")}; failed meanwhile: ${load.failures.length}`);
    expect(load.failures.filter((one) => !isUnavailable(one)).map(described)).toEqual([]);
  });

  it("leaves a barrier waiting as long as it is missing, though access is denied at once", async () => {
    const refusal = await revoke({ ...ONCE, deadlineMs: 5_000 }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "unavailable", outcome: "unknown" });
    const { actor, head, gate } = await rowsOf(space, retiring());
    expect([actor?.state, head?.state, gate?.state]).toEqual(["revoked", "retiring", "frozen"]);
    const denied = left.client.call<Operation>(managerRenew, renewal(left), PATIENT);
    await expect(denied).rejects.toMatchObject({ code: "permission-denied" });
    // What it holds is signed directly and would bring it back after every kick, until it expires.
    for (const identity of ["supervisor", "executor"] as const) await (await left.connection(identity)).close();
    await expect(leaving.bearer()).rejects.toMatchObject({ code: "permission-denied" });
  });

  it("has everything once it is started again, and the barrier ends", async () => {
    const at = ports.monotonic();
    await killed.restart();
    await expect.poll(() => missing(space).catch((error: unknown) => [String(error)]), WAIT).toEqual([]);
    const converged = ports.monotonic();
    await expect.poll(() => revoke(PATIENT).catch((error: unknown) => error), WAIT).toMatchObject({ retired: true });
    console.info(
      `converged after ${Math.round(converged - at)} ms, retired after ${Math.round(ports.monotonic() - at)} ms`,
    );
    const { head, gate, stage } = await rowsOf(space, retiring());
    expect([head?.state, gate?.state, stage?.phase]).toEqual(["retired", "retired", "finished"]);
    expect(new Set(await credentialStates(space, { instanceId: left.instanceId }))).toEqual(new Set(["revoked"]));
    await load.succeeds(AFTERWARDS);
  });
});

describe("afterwards, read from the broker that was killed", { timeout: 120_000 }, () => {
  beforeAll(async () => {
    await load.stop();
    for (const stream of ["auth", "connect"] as const) {
      await vi.waitFor(async () => {
        if ((await leaderOf(space, stream)) !== killed.name) await makeLeader(space, stream, killed.name);
        expect(await leaderOf(space, stream)).toBe(killed.name);
      }, WAIT);
    }
  }, 120_000);

  it("no answer was wrong, and no refusal other than `unavailable`", () => {
    expect(load.failures.filter(({ failure }) => failure instanceof WrongAnswer).map(described)).toEqual([]);
    expect(load.failures.filter((one) => !isUnavailable(one)).map(described)).toEqual([]);
  });

  it("every acknowledged commit is there, in the order of the acknowledgements, and no fence was broken", async () => {
    expect(await broken(space, manager, promised)).toEqual([]);
    expect(await violations(space.store)).toEqual([]);
    expect(await space.store.read(gateKeyOf(manager))).toEqual(gateBefore);
    expect(await stored(space, gateKeyOf(left))).toMatchObject({ state: "open" });
    const rows = [...(await credentialIds(space, manager))].filter((id) => !issuedBefore.has(id));
    const unanswered = load.failures.filter(({ kind }) => kind === "renew").length;
    expect(rows.length - promised.credentialIds.length).toBeLessThanOrEqual(2 * unanswered);
  });

  it("what was not answered is done or not, and its repeat is answered", async () => {
    for (const owner of promised.unanswered) {
      const { lifecycleUid } = await grantTo({ space, once: PATIENT }, owner);
      expect(await grantTo({ space, once: PATIENT }, owner)).toMatchObject({ lifecycleUid });
    }
  });
});
