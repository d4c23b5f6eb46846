/**
 * Whoever may ask JetStream anything may name the subject of a request or a row as the place of the answer. With the
 * real credentials of an agent and of a manager: nothing runs, nothing is written, nobody answers (state §8.22).
 */
import { headers, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type HostedService, SERVICES } from "../../../services/service.ts";
import { actorGrant } from "../../../shared/contracts/auth/actors/actor-grant.ts";
import { runAdmit } from "../../../shared/contracts/auth/runs/run-admit.ts";
import { artifactOf } from "../../../shared/contracts/operation.ts";
import { newNonce, systemPorts } from "../../../shared/ports.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import { artifactSubject } from "../../../shared/subjects.ts";
import { Actor, EndpointLabel, type Triple } from "../../../shared/tokens.ts";
import { freshRunId, type TestManager } from "../../kit/manager.ts";
import { createMeshStreams } from "../../kit/mesh.ts";
import { statistics } from "../../kit/micro.ts";
import type { Person } from "../../kit/person.ts";
import { envelopeOf, Rail, stranger, subjectOf } from "../../kit/rail.ts";
import { startSpace, type TestSpace } from "../../kit/space.ts";
import { sequences, unchanged } from "../../kit/unchanged.ts";
import { everyOperation } from "../../shared/contracts/every-operation.ts";

const RAIL = ["custodian", "auth", "exchange"] as const satisfies readonly HostedService[];
const S = "demo";

let space: TestSpace;
let rail: Rail;
let alice: Person;
let manager: TestManager;
let operator: Triple;
/** A person's connections, and those of every identity of a manager of hers. */
let people: Record<string, NatsConnection>;
/** The body of a grant as the operator would send it, stored where each of them can store. */
let forged: string;
let victim: Triple;

beforeAll(async () => {
  space = await startSpace({ services: SERVICES });
  await createMeshStreams(space.roots.space);
  rail = await Rail.open(space);
  operator = await space.provisioned("operator");
  alice = await space.person("alice", {
    scope: ["supervise", "run", "spawn", "admin"],
    allowSubscribe: ["general"],
    allowPublish: ["general"],
  });
  manager = await space.manager(alice);
  const caller = await alice.callerOf(manager);
  people = {
    agent: (await alice.connect()).connection,
    admin: (await alice.connect({ view: "admin" })).connection,
    caller: caller.connection,
    supervisor: await manager.connection("supervisor"),
    executor: await manager.connection("executor"),
    serve: await manager.connection("serve"),
    goalWriter: await manager.connection("goalWriter"),
  };
  victim = stranger();
  const args = {
    requestId: newNonce(systemPorts),
    owner: victim.owner,
    actor: "cli",
    scope: ["admin"],
    allowSubscribe: [],
    allowPublish: [],
  };
  forged = JSON.stringify(
    envelopeOf({ operation: actorGrant, caller: operator, envelope: { args, replyExpected: true } }),
  );
  const executor = people.executor as NatsConnection;
  const absent = headers();
  absent.set("Nats-Expected-Last-Subject-Sequence", "0");
  await executor.request(artifactSubject(S, forgedHex()), JSON.stringify(JSON.parse(forged)), { timeout: 5_000 });
  people.agent?.publish(`cotal.${S}.chat.${alice.owner}.cli.general`, forged);
  people.agent?.publish(`$KV.cotal_presence_${S}.${alice.owner}.cli`, forged);
  const general = `cotal.${S}.chat.*.*.general`;
  const config = { name: reader(), durable_name: reader(), filter_subject: general, ack_policy: "explicit" };
  const made = { stream_name: `CHAT_${S}`, config };
  const create = `$JS.API.CONSUMER.CREATE.CHAT_${S}.${reader()}.${general}`;
  await people.agent?.request(create, JSON.stringify(made), { timeout: 5_000 });
});
afterAll(() => space.stop());

const forgedHex = (): string => artifactOf(JSON.parse(forged)).digest.slice("sha256:".length);

/** The name that a person's chat history is read under. */
const reader = (): string => `chathist_${alice.owner}-cli-${alice.uid}`;

/** Every question that somebody among them may ask and whose answer carries a stored body, or any. */
function questions(): readonly [asker: string, subject: string, body: string][] {
  const artifact = artifactSubject(S, forgedHex());
  const last = (subject: string) => JSON.stringify({ last_by_subj: subject });
  return [
    ["agent", `$JS.API.STREAM.INFO.CHAT_${S}`, ""],
    ["agent", `$JS.API.CONSUMER.MSG.NEXT.CHAT_${S}.${reader()}`, "1"],
    ["agent", `cotal.${S}.chat.${alice.owner}.cli.general`, forged],
    ["agent", `$KV.cotal_presence_${S}.${alice.owner}.cli`, forged],
    ["agent", `cotal.${S}.ep.one.auth.describe.${alice.owner}.cli.${alice.uid}.${newNonce(systemPorts)}`, "{}"],
    ["admin", `$JS.API.STREAM.MSG.GET.KV_cotal_channels_${S}`, last(`$KV.cotal_channels_${S}.x`)],
    ["caller", `$JS.API.DIRECT.GET.EPC_${S}.${artifact}`, ""],
    ["supervisor", `$JS.API.DIRECT.GET.EPC_${S}.${artifact}`, ""],
    ["executor", artifact, JSON.stringify(JSON.parse(forged))],
    ["executor", `$JS.API.STREAM.MSG.GET.KV_cotal_records_${S}`, last(`$KV.cotal_records_${S}.x`)],
    ["goalWriter", `$JS.API.STREAM.MSG.GET.KV_cotal_records_${S}`, last(`$KV.cotal_records_${S}.x`)],
  ];
}

/** Has every answer go to that subject; resolves when all of them have gone out. */
async function aim(subject: string): Promise<void> {
  for (const [asker, question, body] of questions()) people[asker]?.publish(question, body, { reply: subject });
  // The API answers in order.
  await Promise.all(["agent", "executor", "goalWriter"].map((asker) => people[asker]?.flush()));
  await space.roots.space.request("$JS.API.INFO", "", { timeout: 5_000 });
}

describe("an answer aimed at a request's subject", () => {
  it("runs nothing and is not answered, at any endpoint", async () => {
    const before = await sequences(space);
    const heard = rail.replies.length;
    for (const service of RAIL) {
      const earlier = await statistics(space.roots.space, service);
      const served = everyOperation.filter((one) => one.service === service && earlier.has(one.name));
      for (const operation of served) await aim(subjectOf(space.space, rail.draft(operation, { caller: operator })));
      for (const { name } of served) {
        const counted = async () => (await statistics(space.roots.space, service)).get(name);
        // A stored message, got and pulled: every kind of question reaches every endpoint.
        for (const why of ["broker-made", "subject"] as const) {
          await expect.poll(async () => (await counted())?.data.dropped[why], { timeout: 5_000 }).toBeGreaterThan(0);
        }
        const [was, is] = [earlier.get(name), await counted()];
        const successes = (of: typeof is): number => (of?.num_requests ?? 0) - (of?.num_errors ?? 0);
        expect(successes(is), name).toBe(successes(was));
        const codes = Object.keys(is?.data.codes ?? {});
        expect(codes.filter((code) => code !== "unsupported-version" && code !== "bad-request")).toEqual([]);
      }
    }
    expect(rail.replies.length).toBe(heard);
    expect(await space.store.read(actorRows.key({ owner: victim.owner, actor: Actor.parse("cli") }))).toBeUndefined();
    expect(await sequences(space)).toEqual(before);
  });
});

describe("an answer aimed at a row", () => {
  it("reaches no stream of the authority's account", async () => {
    const key = epGateRows.key({ endpoint: EndpointLabel.parse("manager"), instanceId: manager.instanceId });
    const before = await sequences(space);
    await aim(`$KV.cotal_auth_${S}.${key.key}`);
    await aim(`$KV.cotal_admission_${S}.admission.v1.manager.run-${"0".repeat(32)}`);
    expect(await sequences(space)).toEqual(before);
  });

  it("is no observation of a run request", async () => {
    const caller = await alice.callerOf(manager);
    const subject = caller.subject("run-start");
    const before = (await space.store.lastSeq("observations")) ?? 0;
    await aim(subject);
    // An answer carries headers, an acknowledgement a body of the broker's: neither is what a caller sends.
    await expect.poll(() => space.store.lastSeq("observations")).toBeGreaterThan(before);
    const run = { runId: freshRunId(), subject };
    const args = { ...manager.proven(), kind: "manager-run-admission", run } as const;
    const asked = () => manager.client.call(runAdmit, args, { once: true });
    await unchanged(space, "permission-denied", asked);
    await unchanged(space, "permission-denied", asked);
  });
});
