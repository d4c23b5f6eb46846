/**
 * Two replicas of every service in processes of their own, as `npm start --replicas 2` runs them, under a steady mixed
 * load of requests that nobody repeats. A replica that is killed costs what was in flight at it, and nothing else.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { isAuthorityError } from "../../shared/errors.ts";
import { systemPorts } from "../../shared/ports.ts";
import { planeRows } from "../../shared/rows/plane.ts";
import { stageRows } from "../../shared/rows/stage.ts";
import { Owner } from "../../shared/tokens.ts";
import { violations } from "../chaos/invariants.ts";
import { freePorts } from "../kit/broker.ts";
import { startFace, type TestFace } from "../kit/face.ts";
import type { TestManager } from "../kit/manager.ts";
import type { Connected, Person } from "../kit/person.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { credentialStates, type Lifecycle, lifecycle, named, rowsOf } from "../services/auth/lifecycles.ts";
import { gateKeyOf, stored } from "../services/auth/scene.ts";
import {
  ANSWERED_BY,
  attempts,
  connects,
  exchanges,
  grants,
  grantTo,
  type Kind,
  lists,
  Promised,
  renews,
} from "./day.ts";
import { Doors } from "./doors.ts";
import { broken, credentialIds } from "./ledger.ts";
import { Load, type Sent } from "./load.ts";
import { Processes } from "./processes.ts";
import { Connections, portsOf } from "./sockets.ts";

/** In flight of each kind. */
const AT_ONCE = 2;
/** So many more of each kind that a replica answers, just before it is killed. */
const BURST = 4;
/** Of each kind, all begun after a kill, that must succeed before the next one. */
const AFTERWARDS = 10;
const AUTH_TIMEOUT_S = 5;
const ONCE = { deadlineMs: 15_000, once: true };
const PATIENT = { deadlineMs: 30_000, once: true };
/** What the callout may still admit need not be waited for. */
const LOCAL = Owner.parse("local");
const ports = systemPorts;

/** So many times every kind of replica is killed. */
const ROUNDS = Array.from({ length: Number(process.env.REPLICA_ROUNDS ?? 1) }, (_, round) => round + 1);

interface Kill {
  readonly name: string;
  readonly at: number;
  /** When the broker had dropped the last of its connections. */
  readonly noticedAt: number;
}

let space: TestSpace;
let processes: Processes;
let connections: Connections;
let face: TestFace;
let person: Person;
let manager: TestManager;
let witness: Connected;
let load: Load<Kind>;
let issuedBefore: Set<string>;
const promised = new Promised();
const kills: Kill[] = [];
/** What was heard by who asked for a retirement, of a replica that then died or of the other one. */
const revokes: Promise<unknown>[] = [];
let restarted: Promise<void>;

beforeAll(async () => {
  const [loopbackPort = 0, publicPort = 0] = await freePorts(2);
  const publicUrl = `http://127.0.0.1:${publicPort}`;
  const settings = { gateway: { loopbackPort, publicPort, publicUrl } };
  space = await startSpace({ settings, authTimeoutS: AUTH_TIMEOUT_S });
  [processes, connections, face] = await Promise.all([Processes.start(space), Connections.of(space), startFace(space)]);
  person = await space.person("alice", { scope: ["supervise", "run"] });
  manager = await space.manager(person, { upTo: "activate" });
  const bearer = await person.bearer();
  witness = await person.connectWith(bearer);
  issuedBefore = await credentialIds(space, manager);
  const asking = { space, person, manager, promised, once: ONCE };
  const requests = {
    exchange: exchanges(asking, new Doors([{ url: publicUrl }, { url: face.url, capability: face.capability }])),
    connect: connects(asking, bearer),
    renew: renews(asking),
    attempt: attempts(asking),
    grant: grants(asking),
    list: lists(asking),
  };
  load = new Load<Kind>(requests, AT_ONCE);
  await load.succeeds(AFTERWARDS);
}, 120_000);

afterAll(async () => {
  await load?.stop();
  await face?.close();
  await processes?.stop();
  await space?.stop();
});

/** Kills it under load, and is content once everybody is served by what is left. */
async function kill(name: string): Promise<Kill> {
  const sockets = await portsOf(processes.pid(name));
  const kinds = KINDS.filter((kind) => answers(name, kind));
  if (kinds.length > 0) await load.burst(BURST, kinds);
  const at = ports.monotonic();
  await processes.kill(name);
  await connections.gone(sockets);
  const killed = { name, at, noticedAt: ports.monotonic() };
  kills.push(killed);
  await load.succeeds(AFTERWARDS, killed.noticedAt);
  return killed;
}

const failedSince = (since: number): string[] =>
  load.failures.filter(({ startedAt }) => startedAt > since).map(described);

const described = ({ kind, failure }: Sent<Kind>): string =>
  `${kind}: ${isAuthorityError(failure) ? `${failure.code} ${failure.outcome} ${failure.message}` : failure}`;

const holderOfPlane = async (): Promise<string> => {
  const { claimId } = await stored(space, planeRows.key({}));
  for (const slot of ["1", "2"]) {
    if (claimId.startsWith(await space.files.instanceId(slot, ports))) return `auth-${slot}`;
  }
  throw new Error(`${claimId} is nobody's here`);
};

const revoke = (of: Lifecycle, options = PATIENT) => space.operator.call(actorRevoke, named(of), options);

/** Resolves once the holder has taken the credentials away and is about to prove the connections gone. */
async function underWay(of: Lifecycle): Promise<void> {
  await expect.poll(() => credentialStates(space, of), { timeout: 20_000, interval: 5 }).toEqual(["revoked"]);
}

async function expectRetired(of: Lifecycle): Promise<void> {
  const { head, gate, stage } = await rowsOf(space, of);
  expect([head?.state, gate?.state, stage?.phase]).toEqual(["retired", "retired", "finished"]);
}

describe.each(ROUNDS)("a replica that is killed under load, round %i", { timeout: 120_000 }, (round) => {
  it("of `auth`, amid a retirement that it runs: the other one serves everybody and finishes it", async () => {
    const of = await lifecycle(space, { owner: LOCAL, kind: "interactive" });
    const holder = await holderOfPlane();
    const before = await stored(space, planeRows.key({}));
    revokes.push(revoke(of).catch((error: unknown) => error));
    await underWay(of);
    expect(await stored(space, stageRows.key({ opId: of.opId }))).toMatchObject({ phase: "frozen" });
    const { noticedAt } = await kill(holder);
    expect(failedSince(noticedAt)).toEqual([]);

    expect(await revoke(of)).toMatchObject({ opId: of.opId, retired: true });
    await expectRetired(of);
    expect(await holderOfPlane()).not.toBe(holder);
    expect(await stored(space, planeRows.key({}))).toMatchObject({ generation: before.generation + 1, state: "held" });
    restarted = processes.start(holder); // its registration asks the custodian about its former self
  });

  it.each(["exchange", "callout"])("of `%s`: the other one serves everybody", async (service) => {
    const name = `${service}-${1 + (round % 2)}`;
    const { noticedAt } = await kill(name);
    expect(failedSince(noticedAt)).toEqual([]);
    if (round < ROUNDS.length) await processes.start(name);
  });

  it("of the gateway: another one serves everybody, and so does it once it is back", async () => {
    const { noticedAt } = await kill("gateway");
    expect(failedSince(noticedAt)).toEqual([]);
    await processes.start("gateway");
    await load.succeeds(AFTERWARDS);
    expect(failedSince(noticedAt)).toEqual([]);
  });

  it("the only custodian: issuing goes on, a retirement waits until it is back", async () => {
    await restarted;
    const of = await lifecycle(space, { owner: LOCAL, kind: "interactive" });
    const { at } = await kill("custodian");
    const refusal = await revoke(of, { deadlineMs: 3_000, once: true }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "unavailable", outcome: "unknown" });
    const { actor, head, gate } = await rowsOf(space, of);
    expect([actor?.state, head?.state, gate?.state]).toEqual(["revoked", "retiring", "frozen"]);
    await load.succeeds(AFTERWARDS);

    await processes.start("custodian");
    expect(await revoke(of)).toMatchObject({ opId: of.opId, retired: true });
    await expectRetired(of);
    expect(failedSince(at)).toEqual([]);
  });
});

describe("after all of them", { timeout: 120_000 }, () => {
  it("those requests have failed that were in flight at a killed replica, each with its outcome unknown", async () => {
    await load.stop();
    const unexplained = load.failures.filter((one) => !kills.some((killed) => costs(killed, one)));
    expect(unexplained.map(described)).toEqual([]);
    expect(load.failures.length).toBeGreaterThan(0); // or nothing was in flight
    const lost = kills.map(
      (killed) => `${load.failures.filter((one) => costs(killed, one)).length} with ${killed.name}`,
    );
    console.info(`${load.sent.length} requests, lost ${lost.join(", ")}`);
    for (const answer of await Promise.all(revokes)) {
      if (!isUnknown(answer)) expect(answer).toMatchObject({ retired: true });
    }
    expect(witness.connection.isClosed()).toBe(false);
  });

  it("nothing that was acknowledged is lost, and no credential has been issued without its row", async () => {
    expect(promised.grants.length).toBeGreaterThan(5 * AFTERWARDS);
    expect(await broken(space, manager, promised)).toEqual([]);
    expect(await violations(space.store)).toEqual([]);
    expect(await stored(space, gateKeyOf(manager))).toMatchObject({ state: "open", generation: 1 });
    // Two credentials for each answer that did not arrive, at most.
    const rows = [...(await credentialIds(space, manager))].filter((id) => !issuedBefore.has(id));
    const unanswered = load.failures.filter(({ kind }) => kind === "renew" || kind === "attempt").length;
    expect(rows.length - promised.credentialIds.length).toBeLessThanOrEqual(2 * unanswered);
  });

  it("what was not answered is done or not, and its repeat is answered", async () => {
    for (const owner of promised.unanswered) {
      const { lifecycleUid } = await grantTo({ space, once: PATIENT }, owner);
      expect(await grantTo({ space, once: PATIENT }, owner)).toMatchObject({ lifecycleUid });
    }
  });
});

const isUnknown = (error: unknown): boolean => isAuthorityError(error, "unavailable") && error.outcome === "unknown";

const KINDS = Object.keys(ANSWERED_BY) as Kind[];

const answers = (name: string, kind: Kind): boolean =>
  name === "gateway" ? kind === "exchange" : name.startsWith(ANSWERED_BY[kind]);

/** Whether the request was on its way while the replica died, was one that it answers, and ended as such a request does. */
function costs({ name, at, noticedAt }: Kill, { kind, startedAt, endedAt = 0, failure }: Sent<Kind>): boolean {
  if (startedAt > noticedAt || endedAt < at || !answers(name, kind)) return false;
  if (name === "gateway") return !isAuthorityError(failure); // the connection breaks
  switch (kind) {
    case "exchange": // the gateway waited for it
      return isAuthorityError(failure, "deadline-exceeded");
    case "connect": // the broker did, and no longer than it lets anybody
      return isAuthorityError(failure, "unauthenticated") && endedAt - startedAt < (AUTH_TIMEOUT_S + 2) * 1_000;
    default:
      return isUnknown(failure);
  }
}
