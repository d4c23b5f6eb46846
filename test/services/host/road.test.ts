/** The road in front of every operation: each check of wire §3, in order, against the real endpoints. */
import { headers } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HostedService } from "../../../services/service.ts";
import type { Operation, ServiceName } from "../../../shared/contracts/operation.ts";
import { WIRE } from "../../../shared/limits.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { Actor, Owner, type Triple, Uid } from "../../../shared/tokens.ts";
import { discover, statistics } from "../../kit/micro.ts";
import { type Draft, envelopeOf, Rail, stranger, subjectOf } from "../../kit/rail.ts";
import { startSpace, type TestSpace } from "../../kit/space.ts";
import { sequences } from "../../kit/unchanged.ts";
import { everyOperation } from "../../shared/contracts/every-operation.ts";

const SERVICES = ["custodian", "auth", "exchange"] as const satisfies readonly HostedService[];
const ELSEWHERE = "c".repeat(26);

let space: TestSpace;
let rail: Rail;
let gateway: Triple;
let before: Awaited<ReturnType<typeof sequences>>;
beforeAll(async () => {
  space = await startSpace({ services: SERVICES });
  rail = await Rail.open(space);
  gateway = await space.provisioned("gateway_loopback");
  before = await sequences(space);
});
afterAll(() => space.stop());

/** What the counters must come to. */
class Tally {
  readonly codes: Record<string, number> = {};
  readonly dropped = { subject: 0, "broker-made": 0, "reply-not-inbox": 0 };

  count(answer: Expected): void {
    if ("dropped" in answer) this.dropped[answer.dropped] += 1;
    else this.codes[answer.code] = (this.codes[answer.code] ?? 0) + 1;
  }

  get total(): number {
    return [...Object.values(this.codes), ...Object.values(this.dropped)].reduce((sum, count) => sum + count, 0);
  }
}
const tallies = new Map<string, Tally>();

function tallyOf({ capability }: Operation): Tally {
  const tally = tallies.get(capability) ?? new Tally();
  tallies.set(capability, tally);
  return tally;
}

type Expected = { readonly code: string; readonly detail?: string } | { readonly dropped: keyof Tally["dropped"] };

interface Fault {
  /** Of wire §3. */
  readonly check: string;
  readonly name: string;
  readonly expect: Expected;
  readonly applies?: (operation: Operation) => boolean;
  readonly break: (draft: Draft) => Draft;
}

const targeted = ({ targeted: is }: Operation): boolean => is;
const isDescribe = ({ name }: Operation): boolean => name === "describe";
const not = (is: (operation: Operation) => boolean) => (operation: Operation) => !is(operation);
const bytes = (of: (draft: Draft) => string) => (draft: Draft) => ({ ...draft, bytes: of(draft) });
const envelope = (members: (draft: Draft) => object) => (draft: Draft) => ({
  ...draft,
  envelope: { ...draft.envelope, ...members(draft) },
});
const subject = (of: (subject: string) => string) => (draft: Draft) => ({
  ...draft,
  subject: of(draft.subject ?? subjectOf(space.space, draft)),
});
const op = (draft: Draft): object => ({ ...(draft.envelope?.op ?? (envelopeOf(draft).op as object)) });
const header = (name: string, value: string) => (draft: Draft) => {
  const all = headers();
  all.set(name, value);
  return { ...draft, headers: all };
};
const bad = { code: "bad-request" };
const validation = { code: "bad-request", detail: "ai.cotal.ep.validation" };
const mismatch = (what: string) => ({ code: `${what}-mismatch` });
const drop = (dropped: keyof Tally["dropped"]) => ({ dropped });

const FAULTS: readonly Fault[] = [
  { check: "1", name: "a token too many", expect: drop("subject"), break: subject((text) => `${text}.more`) },
  {
    check: "1",
    name: "a token too few",
    expect: drop("subject"),
    break: subject((text) => text.replace(/\.[^.]+$/, "")),
  },
  {
    check: "1",
    name: "an nkey as nonce",
    expect: drop("subject"),
    break: subject((text) => text.replace(/[^.]+$/, "A".repeat(56))),
  },
  {
    check: "1",
    name: "an owner that is none",
    expect: drop("subject"),
    break: subject((text) => text.split(".").with(-4, "u_ALICE").join(".")),
  },
  {
    check: "1",
    name: "a word that is no mode",
    expect: drop("subject"),
    break: subject((text) => text.replace(/(\.ep\.one\.[^.]+\.[^.]+)\./, "$1.both.")),
  },
  {
    check: "1",
    name: "more than 1,024 bytes",
    expect: drop("subject"),
    break: subject((text) => `${text}${".x".repeat(WIRE.maxSubject / 2)}`),
  },
  { check: "1a", name: "a header of the broker's", expect: drop("broker-made"), break: header("Nats-Stream", "X") },
  {
    check: "1a",
    name: "such a header in small letters",
    expect: drop("broker-made"),
    break: header("nats-msg-id", "1"),
  },
  {
    check: "1a",
    name: "a status line",
    expect: drop("broker-made"),
    break: (draft) => ({ ...draft, headers: headers(404, "No Messages") }),
  },
  {
    check: "2",
    name: "a reply subject that is no inbox",
    expect: drop("reply-not-inbox"),
    break: (draft) => ({ ...draft, reply: `cotal.demo.chat.x.y.${newUid(systemPorts)}` }),
  },
  {
    check: "2",
    name: "a reply subject of the API",
    expect: drop("reply-not-inbox"),
    break: (draft) => ({ ...draft, reply: "$JS.API.STREAM.LIST" }),
  },
  {
    check: "2",
    name: "an inbox of one token",
    expect: drop("reply-not-inbox"),
    break: (draft) => ({ ...draft, reply: "_INBOX" }),
  },
  { check: "4", name: "no JSON", expect: bad, break: bytes(() => "a\nb") },
  { check: "4", name: "no bytes", expect: bad, break: bytes(() => "") },
  { check: "4", name: "an array", expect: bad, break: bytes(() => "[]") },
  {
    check: "4",
    name: "more than 65,536 bytes",
    expect: bad,
    break: bytes((draft) => JSON.stringify({ ...envelopeOf(draft), more: "x".repeat(WIRE.maxBody) })),
  },
  {
    check: "4",
    name: "a member twice",
    expect: bad,
    break: bytes((draft) => `{"v":1,${JSON.stringify(envelopeOf(draft)).slice(1)}`),
  },
  {
    check: "4",
    name: "half of a surrogate pair",
    expect: bad,
    break: bytes((draft) => JSON.stringify({ ...envelopeOf(draft), half: "@" }).replace("@", "\\ud800")),
  },
  {
    check: "4",
    name: "33 levels",
    expect: bad,
    break: bytes((draft) => JSON.stringify({ ...envelopeOf(draft), args: nested(32) })),
  },
  { check: "5", name: "another version", expect: { code: "unsupported-version" }, break: envelope(() => ({ v: 2 })) },
  {
    check: "5",
    name: "a legacy body",
    expect: { code: "unsupported-version" },
    break: bytes(() => '{"op":"x","args":{}}'),
  },
  { check: "6", name: "a member nobody knows", expect: validation, break: envelope(() => ({ by: "mallory" })) },
  { check: "6", name: "an id that is none", expect: validation, break: envelope(() => ({ id: "a.b" })) },
  { check: "6", name: "no sender", expect: validation, break: envelope(() => ({ from: undefined })) },
  { check: "6", name: "a call without a deadline", expect: bad, break: envelope(() => ({ deadlineMs: undefined })) },
  { check: "6", name: "a deadline of nothing", expect: validation, break: envelope(() => ({ deadlineMs: 0 })) },
  { check: "6", name: "a goal", expect: bad, break: envelope(() => ({ goalId: "goal" })) },
  {
    check: "7",
    name: "another command",
    expect: mismatch("op"),
    break: envelope((draft) => ({ op: { ...op(draft), command: "other" } })),
  },
  {
    check: "7",
    name: "another endpoint",
    expect: mismatch("op"),
    break: envelope((draft) => ({ op: { ...op(draft), endpoint: "manager" } })),
  },
  { check: "8", name: "another class", expect: mismatch("class"), break: envelope(() => ({ class: "journal" })) },
  {
    check: "9",
    name: "another sender",
    expect: mismatch("sender"),
    break: envelope(() => ({ from: { id: "local.somebody", name: "x" } })),
  },
  {
    check: "10",
    name: "a mode that it has not",
    expect: mismatch("target"),
    applies: not(targeted),
    break: (draft) => ({ ...draft, mode: "self" }),
  },
  {
    check: "10",
    name: "a target that it has not",
    expect: mismatch("target"),
    applies: not(targeted),
    break: envelope(() => ({ target: targetOf(stranger()) })),
  },
  {
    check: "10",
    name: "no mode where it needs one",
    expect: mismatch("target"),
    applies: targeted,
    break: (draft) => ({ ...draft, mode: null }),
  },
  {
    check: "10",
    name: "another mode",
    expect: mismatch("target"),
    applies: targeted,
    break: (draft) => ({ ...draft, mode: "handle" }),
  },
  {
    check: "11",
    name: "no target in the envelope",
    expect: mismatch("target"),
    applies: targeted,
    break: envelope(() => ({ target: undefined })),
  },
  {
    check: "11",
    name: "another target",
    expect: mismatch("target"),
    applies: targeted,
    break: envelope(() => ({ target: targetOf(stranger()) })),
  },
  {
    check: "12",
    name: "a bind",
    expect: bad,
    applies: isDescribe,
    break: envelope(() => ({ bind: { instanceId: ELSEWHERE, epoch: 0 } })),
  },
  {
    check: "13",
    name: "another instance",
    expect: { code: "failed-precondition", detail: "ai.cotal.ep.bind-refused" },
    applies: not(isDescribe),
    break: envelope(() => ({ bind: { instanceId: ELSEWHERE, epoch: 0 } })),
  },
  {
    check: "13",
    name: "another epoch",
    expect: { code: "expired", detail: "ai.cotal.ep.bind-refused" },
    applies: not(isDescribe),
    break: envelope(({ operation }) => ({ bind: { instanceId: instanceOf(operation), epoch: 9 } })),
  },
  {
    check: "14",
    name: "no digests",
    expect: mismatch("contract"),
    applies: not(isDescribe),
    break: envelope((draft) => ({ op: { ...op(draft), inputDigest: undefined, outputDigest: undefined } })),
  },
  {
    check: "14",
    name: "one digest",
    expect: mismatch("contract"),
    applies: not(isDescribe),
    break: envelope((draft) => ({ op: { ...op(draft), outputDigest: undefined } })),
  },
  {
    check: "14",
    name: "a digest of something else",
    expect: mismatch("contract"),
    applies: not(isDescribe),
    break: envelope((draft) => ({ op: { ...op(draft), inputDigest: `sha256:${"0".repeat(64)}` } })),
  },
  {
    check: "14",
    name: "digests where none are",
    expect: mismatch("contract"),
    applies: isDescribe,
    break: envelope((draft) => ({ op: { ...op(draft), inputDigest: `sha256:${"0".repeat(64)}` } })),
  },
  {
    check: "15",
    name: "a login from somebody else than a gateway",
    expect: { code: "permission-denied" },
    break: envelope(() => ({ auth: "token" })),
  },
  {
    check: "15",
    name: "a login where none is taken",
    expect: bad,
    applies: ({ auth }) => !auth,
    break: (draft) => envelope(() => ({ auth: "token" }))({ ...draft, caller: gateway }),
  },
  {
    check: "15a",
    name: "the operator under another uid",
    expect: { code: "permission-denied" },
    break: (draft) => ({
      ...draft,
      caller: { owner: Owner.parse("local"), actor: Actor.parse("operator"), uid: Uid.parse(ELSEWHERE) },
    }),
  },
  {
    check: "15a",
    name: "a provisioned user under another uid",
    expect: { code: "permission-denied" },
    break: (draft) => ({ ...draft, caller: { ...gateway, uid: Uid.parse(ELSEWHERE) } }),
  },
  {
    check: "16",
    name: "arguments of another shape",
    expect: validation,
    break: envelope(() => ({ args: { "a\nb": 1 } })),
  },
  {
    check: "16",
    name: "no arguments where some are needed",
    expect: validation,
    applies: ({ example }) => example !== null,
    break: envelope(() => ({ args: undefined })),
  },
];

const targetOf = ({ owner, actor, uid }: Triple) => ({ owner, actor, lifecycleUid: uid });
const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) });

const instances = new Map<ServiceName, string>();
const instanceOf = ({ service }: Operation): string => instances.get(service) ?? "";

interface Trial {
  readonly draft: Draft;
  readonly expected: Expected;
}

/** Tries all at once. A refusal comes back; that something was dropped is told by the counters alone. */
async function tryAll(service: ServiceName, trials: readonly Trial[]): Promise<void> {
  const drops = trials.filter(({ expected }) => "dropped" in expected);
  const counted = await statistics(space.roots.space, service);
  for (const { draft, expected } of trials) tallyOf(draft.operation).count(expected);
  const inboxes = drops.map(({ draft }) => {
    const whole = { ...draft, reply: draft.reply ?? rail.inbox() };
    rail.post(whole);
    return whole.reply;
  });
  await Promise.all(trials.map((trial) => assertRefused(trial)));
  if (drops.length === 0) return;
  const sum = (all: typeof counted): number =>
    [...all.values()].reduce(
      (total, { data }) => Object.values(data.dropped).reduce((one, other) => one + other, total),
      0,
    );
  await expect
    .poll(async () => sum(await statistics(space.roots.space, service)), { interval: 2 })
    .toBe(sum(counted) + drops.length);
  expect(rail.replies.filter(({ subject: at }) => inboxes.includes(at))).toEqual([]);
}

async function assertRefused({ draft, expected }: Trial): Promise<void> {
  if ("dropped" in expected) return;
  const reply = await rail.send(draft);
  const { code, detail } = expected;
  const wanted = { ok: false, code, outcome: "not-executed", error: `${code}: ${reply.message}` };
  expect(reply, draft.operation.capability).toMatchObject(wanted);
  expect(reply.details?.[0]?.kind).toBe(detail);
  expect(reply.error).toMatch(/^[\x20-\x7e]{1,280}$/);
}

describe.each(SERVICES)("the road of %s", (service) => {
  let operations: readonly Operation[];

  beforeAll(async () => {
    const all = await statistics(space.roots.space, service);
    operations = everyOperation.filter((operation) => operation.service === service && all.has(operation.name));
    const { metadata } = await discover(space.roots.space, "PING", service);
    instances.set(service, metadata.instance ?? "");
  });

  it("leads to every operation that is declared", () => {
    const declared = everyOperation.filter((operation) => operation.service === service);
    expect(operations.map(({ name }) => name)).toEqual(declared.map(({ name }) => name));
  });

  it.each(FAULTS)("check $check refuses $name", async ({ applies = () => true, break: broken, expect: expected }) => {
    const drafts = operations.filter(applies).map((operation) => broken(rail.draft(operation)));
    await tryAll(
      service,
      drafts.map((draft) => ({ draft, expected })),
    );
  });

  it("refuses with the first check that a message breaks, whatever else is wrong", async () => {
    for (const operation of operations) {
      const faults = FAULTS.filter(({ applies = () => true }) => applies(operation));
      const trials = faults.map((fault, at) => {
        const later = faults.slice(at + 1).filter(({ check }) => check !== fault.check);
        const firstOfEach = later.filter(({ check }, index) => later.findIndex((one) => one.check === check) === index);
        const wrong = firstOfEach.reduceRight((draft, { break: broken }) => broken(draft), rail.draft(operation));
        return { draft: fault.break(wrong), expected: fault.expect };
      });
      await tryAll(service, trials);
    }
  });

  it("counted every request and every refusal of these", async () => {
    const all = await statistics(space.roots.space, service);
    for (const operation of operations) {
      const { codes, dropped, total } = tallyOf(operation);
      const counted = all.get(operation.name);
      expect(counted?.data, operation.capability).toEqual({ inFlight: 0, dropped, codes });
      expect(counted, operation.capability).toMatchObject({ num_requests: total, num_errors: total });
    }
  });
});

it("wrote nothing for any of it", async () => {
  expect(await sequences(space)).toEqual(before);
});
