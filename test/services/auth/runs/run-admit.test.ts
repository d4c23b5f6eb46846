import { headers } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { observations } from "../../../../services/auth/runs/metrics.ts";
import { SERVICES } from "../../../../services/service.ts";
import { canonicalText } from "../../../../shared/canonical.ts";
import { runAdmit } from "../../../../shared/contracts/auth/runs/run-admit.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import { createKeyPair } from "../../../../shared/credentials/nkeys.ts";
import { newGeneration, newNonce, newUid, systemPorts } from "../../../../shared/ports.ts";
import { actorRows } from "../../../../shared/rows/actor.ts";
import { admissionRows } from "../../../../shared/rows/admission.ts";
import { gateRows } from "../../../../shared/rows/gate.ts";
import { type Ceiling, issuedRows } from "../../../../shared/rows/issued.ts";
import { create } from "../../../../shared/store/message.ts";
import { subjectOf } from "../../../../shared/store/streams.ts";
import { buildSubject, type RequestSubject } from "../../../../shared/subjects.ts";
import {
  type Command,
  EndpointLabel,
  type Generation,
  principalOf,
  RunId,
  Space,
  type Triple,
} from "../../../../shared/tokens.ts";
import { ownWork } from "../../../../shared/work.ts";
import { freshRunId, type TestManager } from "../../../kit/manager.ts";
import type { ManagerCaller, Person } from "../../../kit/person.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { refusesStrangers, refusesUnregistered } from "../manager-refusals.ts";
import { during, MANAGER, retired, stored } from "../scene.ts";

type Args = Input<typeof runAdmit>;

let space: TestSpace;
let alice: Person;
let manager: TestManager;
/** Alice's connection to that manager, through the callout. */
let caller: ManagerCaller;

beforeAll(async () => {
  space = await startSpace({ services: SERVICES, replicas: 2 });
  alice = await space.person("alice", { scope: ["supervise", "run"] });
  manager = await space.manager(alice);
  caller = await alice.callerOf(manager);
});
afterAll(() => space.stop());

const args = (subject: string, runId: RunId = freshRunId(), of = manager): Args => ({
  ...of.proven(),
  kind: "manager-run-admission",
  run: { runId, subject },
});
const admit = (request: Args) => manager.client.call(runAdmit, request, { once: true });
const refused = (code: Parameters<typeof unchanged>[1], request: Args) => unchanged(space, code, () => admit(request));
const start = (runId = freshRunId(), more?: Parameters<ManagerCaller["request"]>[2]) =>
  caller.request("run-start", { runId }, more);
const keyOf = (runId: RunId) => admissionRows.key({ endpoint: MANAGER, runId });

refusesStrangers(
  () => ({ space, person: alice, manager }),
  runAdmit,
  (of) => args("x", freshRunId(), of),
);
refusesUnregistered(
  () => ({ space, person: alice, manager }),
  runAdmit,
  (of) => args("x", freshRunId(), of),
);

it("is for this account (R1)", async () => {
  await refused("permission-denied", {
    ...args(await start()),
    accountPublicKey: createKeyPair("account").public as never,
  });
});

describe("an admission", () => {
  it("is one row that says who asked, what that connection may at most, and on which evidence", async () => {
    const runId = freshRunId();
    const subject = await start(runId);
    const before = await sequences(space);
    const request = args(subject, runId);
    const answer = await admit(request);
    const { owner, actor, uid } = alice;
    const ref = { space: space.space, owner, actor, uid, generation: caller.generation };
    const evidence = await stored(space, issuedRows.key(ref));
    const row = await space.store.read(keyOf(runId));
    expect(answer).toEqual({
      v: 1,
      kind: "manager-run-admission",
      requestId: request.requestId,
      runId,
      revision: row?.revision,
      admission: {
        version: 1,
        space: "demo",
        endpoint: "manager",
        runId,
        instanceId: manager.instanceId,
        caller: { owner, actor, uid, generation: caller.generation },
        ceiling: evidence.permissions,
        provenance: { kind: "issued", ref, resolvedRevision: (await space.store.read(issuedRows.key(ref)))?.revision },
        admittedAt: expect.any(Number),
      },
    });
    expect(row?.value).toEqual(answer.admission);
    const bytes = await space.store.next("admission", keyOf(runId).key, 1);
    expect(Buffer.from(bytes?.body ?? []).toString()).toBe(canonicalText(answer.admission));
    expect(await sequences(space)).toEqual({ ...before, admission: (before.admission ?? 0) + 1 });
  });

  it("may be asked for by the person behind the manager, through the gateway", async () => {
    expect((await alice.ask(runAdmit, args(await start()))).admission.instanceId).toBe(manager.instanceId);
  });

  it("again, with a fresh request, is the stored one", async () => {
    const runId = freshRunId();
    const first = await admit(args(await start(runId), runId));
    const before = await sequences(space);
    const again = await admit(args(await start(runId), runId));
    expect([again.revision, again.admission]).toEqual([first.revision, first.admission]);
    expect(await sequences(space)).toEqual(before);
  });

  it("of one observation is given once, whichever replicas are asked", async () => {
    const rounds = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const runId = freshRunId();
        const subject = await start(runId);
        const both = await Promise.allSettled([admit(args(subject, runId)), admit(args(subject, runId))]);
        return both.map((one) => (one.status === "fulfilled" ? "ok" : one.reason.code)).sort();
      }),
    );
    for (const outcomes of rounds) expect(outcomes).toEqual(["ok", "permission-denied"]);
  });
});

describe("check 2: the subject", () => {
  it("is a run request to this instance under issued authority", async () => {
    const wrong: Partial<RequestSubject>[] = [
      { space: Space.parse("other") },
      { endpoint: EndpointLabel.parse("auth") },
      { command: "run-resume" as Command },
      { mode: "self" },
      { mode: "owner", target: { owner: alice.owner } },
      { rail: "all" },
      { instanceId: newUid(systemPorts) },
    ];
    for (const more of wrong) {
      const { rail = "inst" } = more;
      const subject = caller.subject("run-start", more);
      await refused(
        "permission-denied",
        args(rail === "inst" ? subject : subject.replace(`.${manager.instanceId}`, "")),
      );
    }
    const subject = caller.subject("run-start");
    await refused("permission-denied", args(subject.replace(".v1.", ".").replace(`.${caller.generation}`, "")));
    for (const text of [subject.replace(`.${caller.generation}`, ""), `${subject}.x`, "x", " ", "a\nb"]) {
      await refused("permission-denied", args(text));
    }
  });

  it("has 1 to 1,024 characters", async () => {
    for (const text of ["", "x".repeat(1_025)]) await refused("bad-request", args(text));
  });

  it("is refused before its observation is taken", async () => {
    const other = await space.manager(alice);
    const runId = freshRunId();
    const subject = await start(runId);
    await unchanged(space, "permission-denied", () =>
      other.client.call(runAdmit, args(subject, runId, other), { once: true }),
    );
    expect((await admit(args(subject, runId))).runId).toBe(runId);
  });
});

/** Publishes as any triple may that the broker lets: here the test's own hand. */
async function forged(
  from: Triple,
  generation: Generation,
  more: Partial<RequestSubject> = {},
  body?: object | string,
) {
  const subject = buildSubject({
    space: space.space,
    version: "v1",
    rail: "inst",
    ...(more.rail === "one" ? {} : { instanceId: manager.instanceId }),
    endpoint: MANAGER,
    command: "run-start" as Command,
    mode: null,
    caller: { owner: from.owner, actor: from.actor, uid: from.uid },
    generation,
    nonce: newNonce(systemPorts),
    ...more,
  });
  const envelope = {
    v: 1,
    id: newNonce(systemPorts),
    op: { endpoint: "manager", command: "run-start" },
    class: "ephemeral",
    replyExpected: true,
    args: {},
    from: { id: principalOf(from.owner, from.actor), name: "test" },
    deadlineMs: 5_000,
    ...(typeof body === "object" ? body : {}),
  };
  space.roots.space.publish(subject, typeof body === "string" ? body : JSON.stringify(envelope));
  await space.roots.space.flush();
  return subject;
}

describe("check 3: the observation", () => {
  async function counted(): Promise<{ taken: number; absent: number }> {
    const { values } = await observations.get();
    const of = (result: string) => values.find(({ labels }) => labels.result === result)?.value ?? 0;
    return { taken: of("taken"), absent: of("absent") };
  }

  it("is there, and is taken once", async () => {
    const [subject, runId] = [await start(), freshRunId()];
    const { taken, absent } = await counted();
    await admit(args(subject, runId));
    const never = refused("permission-denied", args(caller.subject("run-start")));
    await Promise.all([never, refused("permission-denied", args(subject, runId))]);
    expect(await counted()).toEqual({ taken: taken + 1, absent: absent + 2 });
  });

  it("is a request on its subject", async () => {
    const { generation } = caller;
    for (const body of [
      { op: { endpoint: "manager", command: "run-resume" } },
      { op: { endpoint: "auth", command: "run-start" } },
      { from: { id: "local.operator", name: "x" } },
      { target: { owner: alice.owner, actor: "cli", lifecycleUid: alice.uid } },
      { bind: { instanceId: newUid(systemPorts), epoch: 0 } },
      { v: 2 },
      { by: "mallory" },
      "no JSON",
      "a\nb",
      "[]",
      "",
    ]) {
      await refused("permission-denied", args(await forged(alice, generation, {}, body)));
    }
    const well = await forged(alice, generation, {}, { bind: { instanceId: manager.instanceId, epoch: 0 } });
    expect((await admit(args(well))).admission.caller.generation).toBe(generation);
  });

  it("has no header, as none of a caller's has", async () => {
    const subject = caller.subject("run-start");
    const all = headers();
    all.set("Nats-Stream", "X");
    space.roots.space.publish(subject, "{}", { headers: all });
    await space.roots.space.flush();
    await refused("permission-denied", args(subject));
  });

  it("is of at most 16,384 bytes", async () => {
    const subject = await start(freshRunId(), { envelope: { args: { runId: "x".repeat(20_000) } } });
    await refused("permission-denied", args(subject));
  });

  it("is spent although a later check fails", async () => {
    const runId = freshRunId();
    await admit(args(await start(runId), runId));
    const other = await alice.callerOf(manager);
    const subject = await other.request("run-start", { runId });
    await refused("conflict", args(subject, runId));
    await refused("permission-denied", args(subject, freshRunId()));
  });
});

describe("checks 4 to 6: the caller", () => {
  const nothing: Ceiling = {
    publish: { allow: { mode: "none" }, deny: [] },
    subscribe: { allow: { mode: "none" }, deny: [] },
  };
  const everything: Ceiling = { ...nothing, publish: { allow: { mode: "patterns", patterns: ["cotal.>"] }, deny: [] } };

  /** A generation of the person's, recorded with this ceiling. */
  async function issued(of: Triple, permissions: Ceiling, expiresAt = Date.now() + 60_000): Promise<Generation> {
    const { owner, actor, uid } = of;
    const ref = { space: space.space, owner, actor, uid, generation: newGeneration(systemPorts) };
    const sources = [
      { space: space.space, bucket: "cotal_actors_demo", key: `actor.${owner}.${actor}.${uid}` },
      { space: space.space, bucket: "cotal_auth_demo", key: `cred.${uid}` },
    ];
    const evidence = { version: 1 as const, ref, sources, permissions, expiresAt };
    await space.store.commit([create(issuedRows.key(ref), evidence)], ownWork(systemPorts, 5_000));
    return ref.generation;
  }

  it("is of the owner that is registered (4)", async () => {
    const bob = await space.person("bob", { scope: ["run"] });
    await refused("permission-denied", args(await forged(bob, await issued(bob, everything))));
  });

  it("holds issued authority that is recorded, unexpired, its own (5)", async () => {
    expect((await admit(args(await forged(alice, await issued(alice, everything))))).admission.ceiling).toEqual(
      everything,
    );
    await refused("permission-denied", args(await forged(alice, newGeneration(systemPorts))));
    await refused("permission-denied", args(await forged(alice, await issued(alice, everything, Date.now() - 1))));
    const ops = await space.person("alice", { actor: "ops", scope: ["run"] });
    await refused("permission-denied", args(await forged(ops, await issued(alice, everything))));
    await refused("permission-denied", args(await forged({ ...alice, uid: newUid(systemPorts) }, caller.generation)));
  });

  it("is live: its actor active at that uid, its gate not retired (5)", async () => {
    const { owner, actor, uid } = await space.person("alice", { actor: "gone", scope: ["run"] });
    const triple = { owner, actor, uid };
    const generation = await issued(triple, everything);
    const row = actorRows.key({ owner, actor });
    await during(space, row, { state: "revoked" }, async () => {
      await refused("permission-denied", args(await forged(triple, generation)));
    });
    await during(space, row, { lifecycleUid: newUid(systemPorts) }, async () => {
      await refused("permission-denied", args(await forged(triple, generation)));
    });
    await during(space, gateRows.key({ uid }), retired(), async () => {
      await refused("permission-denied", args(await forged(triple, generation)));
    });
    expect((await admit(args(await forged(triple, generation)))).admission.caller).toMatchObject({ actor: "gone" });
  });

  it("may publish exactly that subject (6)", async () => {
    const ceiling = "the ceiling does not permit this subject";
    const beyond = async (subject: string) =>
      expect((await refused("permission-denied", args(subject))).message).toBe(ceiling);
    await beyond(await forged(alice, await issued(alice, nothing)));
    const denied: Ceiling = {
      ...everything,
      publish: { ...everything.publish, deny: ["cotal.*.ep.v1.inst.manager.*.run-start.>"] },
    };
    await beyond(await forged(alice, await issued(alice, denied)));
    const { generation } = caller;
    await beyond(await forged(alice, generation, { rail: "one" }));
  });
});

describe("check 7: the run", () => {
  it("is admitted for one caller and instance", async () => {
    const runId = freshRunId();
    await admit(args(await start(runId), runId));
    const another = await alice.callerOf(manager);
    expect(another.generation).not.toBe(caller.generation);
    await refused("conflict", args(await another.request("run-start", { runId }), runId));
    const second = await space.manager(alice);
    const toSecond = await (await alice.callerOf(second)).request("run-start", { runId });
    await unchanged(space, "conflict", () =>
      second.client.call(runAdmit, args(toSecond, runId, second), { once: true }),
    );
  });

  it("whose admission is garbled is not admitted; whose is deleted needs repair", async () => {
    const put = async (runId: RunId, body: string, operation?: string) => {
      const all = headers();
      if (operation) all.set("KV-Operation", operation);
      const subject = subjectOf("admission", space.space, keyOf(runId).key);
      await space.roots.authority.request(subject, body, { headers: all, timeout: 5_000 });
    };
    const [garbled, marker] = [freshRunId(), freshRunId()];
    await put(garbled, "{");
    await refused("permission-denied", args(await start(garbled), garbled));
    await put(marker, "", "DEL");
    await refused("failed-precondition", args(await start(marker), marker));
  });

  it("has an id of its own form", async () => {
    const runId = "run-1" as string as RunId;
    expect(RunId.is(runId)).toBe(false);
    await refused("bad-request", args(await start(), runId));
  });
});
