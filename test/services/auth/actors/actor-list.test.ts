import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SERVICES } from "../../../../services/service.ts";
import type { AuthorityClient } from "../../../../shared/client.ts";
import { actorList } from "../../../../shared/contracts/auth/actors/actor-list.ts";
import type { Input } from "../../../../shared/contracts/operation.ts";
import type { ErrorCode } from "../../../../shared/errors.ts";
import { ARGUMENT } from "../../../../shared/limits.ts";
import { newNonce, newUid, systemPorts } from "../../../../shared/ports.ts";
import { type Actor as ActorRow, actorRows } from "../../../../shared/rows/actor.ts";
import { subjectOf } from "../../../../shared/store/streams.ts";
import {
  Actor,
  ChannelPattern,
  Hex64,
  type Owner,
  Principal,
  type RequestId,
  type Triple,
} from "../../../../shared/tokens.ts";
import type { Person } from "../../../kit/person.ts";
import { stranger } from "../../../kit/rail.ts";
import { startSpace, type TestSpace } from "../../../kit/space.ts";
import { sequences, unchanged } from "../../../kit/unchanged.ts";
import { during } from "../scene.ts";

type Args = Input<typeof actorList>;

let space: TestSpace;
let admin: Person;
let administering: AuthorityClient;

beforeAll(async () => {
  space = await startSpace({ services: SERVICES });
  admin = await space.person("admin", { scope: ["admin"] });
  administering = (await admin.connect({ view: "admin" })).client;
});
afterAll(() => space.stop());

const args = (change: Partial<Args> = {}): Args => ({
  requestId: newNonce(systemPorts) as string as RequestId,
  ...change,
});
const list = (change: Partial<Args> = {}, by = space.operator) => by.call(actorList, args(change), { once: true });
const row = (owner: Owner, actor: string, change: Partial<ActorRow> = {}): ActorRow => ({
  ver: 1,
  owner,
  actor: Actor.parse(actor),
  lifecycleUid: newUid(systemPorts),
  kind: "interactive",
  state: "active",
  scope: [],
  allowSubscribe: [],
  allowPublish: [],
  grantedAt: 1,
  grantedBy: Principal.parse("local.operator"),
  ...change,
});
const put = (value: ActorRow) => space.put(actorRows.key(value), value);
const managed = { kind: "managed" as const, tokenHash: Hex64.parse("5".repeat(64)) };

describe("the caller", () => {
  const as = (code: ErrorCode, caller: Triple) =>
    unchanged(space, code, () => space.clientAs(caller).call(actorList, args(), { once: true }));

  it("is the operator, or an administrator on the own connection", async () => {
    await as("permission-denied", await space.provisioned("gateway_loopback"));
    await as("permission-denied", await space.provisioned("platform_host"));
    await as("permission-denied", { ...(await space.provisioned("operator")), uid: newUid(systemPorts) });
    await as("permission-denied", await space.person("bob", { scope: ["supervise"] }));
    await as("expired", { ...admin, uid: newUid(systemPorts) });
    await during(space, actorRows.key(admin), { state: "revoked" }, () => as("permission-denied", admin));
  });

  it("sees the own owner's alone as an administrator (1)", async () => {
    await put(row(admin.owner, "second"));
    const seen = await list({}, administering);
    expect(seen.actors.map(({ actor }) => actor)).toEqual(["cli", "second"]);
    expect((await list({ owner: admin.owner }, administering)).actors).toEqual(seen.actors);
    await unchanged(space, "permission-denied", () => list({ owner: stranger().owner }, administering));
  });
});

describe("a list", () => {
  it("is of whole rows but for the hash of a secret", async () => {
    const { owner } = stranger();
    const person = row(owner, "cli", { label: "a\nb", role: "reviewer" as never });
    const agent = row(owner, "coder", { ...managed, parent: Principal.parse(`${owner}.cli`) });
    await Promise.all([put(person), put(agent)]);
    const { tokenHash: _, ...shown } = agent;
    const before = await sequences(space);
    const answer = await list({ owner });
    expect(answer.actors).toEqual([person, shown]);
    expect(JSON.stringify(answer)).not.toContain(managed.tokenHash);
    expect(await sequences(space)).toEqual(before);
  });

  it("is of one kind where one is named", async () => {
    const { owner } = stranger();
    await Promise.all([
      put(row(owner, "cli")),
      put(row(owner, "coder", managed)),
      put(row(owner, "gone", { state: "revoked" })),
    ]);
    const names = async (kind?: "interactive" | "managed") =>
      (await list({ owner, ...(kind ? { kind } : {}) })).actors.map(({ actor }) => actor);
    expect(await names()).toEqual(["cli", "coder", "gone"]);
    expect(await names("managed")).toEqual(["coder"]);
    expect(await names("interactive")).toEqual(["cli", "gone"]);
  });

  it("comes in pages of 256, by key", async () => {
    const { owner } = stranger();
    const names = Array.from({ length: 2 * ARGUMENT.page + 3 }, (_, at) => `a${String(at).padStart(4, "0")}`);
    await Promise.all(names.map((name) => put(row(owner, name))));
    const seen: string[] = [];
    let after: string | undefined;
    for (const size of [256, 256, 3]) {
      const { actors, next }: Awaited<ReturnType<typeof list>> = await list({
        owner,
        ...(after === undefined ? {} : { after }),
      });
      expect(actors).toHaveLength(size);
      seen.push(...actors.map(({ actor }) => actor));
      after = next;
    }
    expect(after).toBeUndefined();
    expect(seen).toEqual(names);
    const all = await list();
    expect(all.actors).toHaveLength(ARGUMENT.page);
    expect(all.next).toBeDefined();
  });

  it("ends a page early where its rows are large, and goes on behind it", async () => {
    const { owner } = stranger();
    const patterns = Array.from({ length: ARGUMENT.list }, (_, at) => ChannelPattern.parse(`${"c".repeat(240)}.${at}`));
    const names = Array.from({ length: 30 }, (_, at) => `large${String(at).padStart(2, "0")}`);
    await Promise.all(names.map((name) => put(row(owner, name, { allowSubscribe: patterns, allowPublish: patterns }))));
    const seen: string[] = [];
    const sizes: number[] = [];
    let after: string | undefined;
    do {
      const page: Awaited<ReturnType<typeof list>> = await list({ owner, ...(after === undefined ? {} : { after }) });
      expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThan(ARGUMENT.pageBytes + 1_024);
      seen.push(...page.actors.map(({ actor }) => actor));
      sizes.push(page.actors.length);
      after = page.next;
    } while (after !== undefined);
    expect(seen).toEqual(names);
    expect(sizes).toEqual([16, 14]);
  });

  it("ends with the last full page", async () => {
    const { owner } = stranger();
    await Promise.all(Array.from({ length: ARGUMENT.page }, (_, at) => put(row(owner, `b${at}`))));
    expect(await list({ owner })).not.toHaveProperty("next");
    expect((await list({ owner, after: `actor.${owner}.zzz` })).actors).toEqual([]);
    await unchanged(space, "bad-request", () => list({ after: "gate.x" }));
  });

  it("leaves out a row that cannot be read, and tells the log of it", async () => {
    const { owner } = stranger();
    await put(row(owner, "cli"));
    const broken = actorRows.key({ owner, actor: Actor.parse("broken") });
    await space.roots.authority.request(subjectOf("auth", space.space, broken.key), "{", { timeout: 5_000 });
    expect((await list({ owner })).actors.map(({ actor }) => actor)).toEqual(["cli"]);
    expect(space.hosts.flatMap(({ lines }) => lines).some((line) => line.includes(broken.key))).toBe(true);
  });

  it("of nobody is empty", async () => {
    expect((await list({ owner: stranger().owner })).actors).toEqual([]);
  });
});
