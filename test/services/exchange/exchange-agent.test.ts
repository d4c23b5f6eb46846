import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AuthorityClient } from "../../../shared/client.ts";
import { exchangeAgent } from "../../../shared/contracts/exchange/exchange-agent.ts";
import type { Operation } from "../../../shared/contracts/operation.ts";
import { type Actor, actorRows } from "../../../shared/rows/actor.ts";
import { ChannelPattern, type Owner } from "../../../shared/tokens.ts";
import { ownerOf, seconds } from "../../kit/logins.ts";
import type { TestSpace } from "../../kit/space.ts";
import { codeOf, type ExchangeSpace, opened, refusal, startExchangeSpace } from "./asking.ts";
import { activate, agentOf, type Changes, manager, scopes, TOKEN } from "./ledger.ts";

let exchange: ExchangeSpace;
let space: TestSpace;
let client: AuthorityClient;
let owner: Owner;
let parent: Actor;

beforeAll(async () => {
  exchange = await startExchangeSpace();
  space = exchange.space;
  client = await space.client("gateway_public");
  owner = await ownerOf(space, "alice");
  const lists = { allowSubscribe: [ChannelPattern.parse("team.>")], allowPublish: [ChannelPattern.parse("team.*")] };
  parent = await activate(space, owner, "cli", { row: { scope: scopes("run", "role:reviewer"), ...lists } });
});
afterAll(() => exchange.stop());

type Reply = { token: string; owner: string; exp: number; managerInstanceId?: string };
const ask = (args: object): Promise<Reply> =>
  client.call<Operation>(exchangeAgent, { owner, actorToken: TOKEN, ...args }, { once: true }) as Promise<Reply>;

let agents = 0;
async function agent(row: Partial<Actor> = {}, changes: Changes = {}): Promise<string> {
  agents += 1;
  const name = `agent_${agents}`;
  await activate(space, owner, name, { ...changes, row: agentOf(parent, row) });
  return name;
}

describe("an agent's exchange", () => {
  it("turns its token into a bearer of 300 s that names its parent", async () => {
    const actor = await agent({ scope: scopes("run") });
    const reply = await ask({ actor, ttlSec: 900 });
    expect(Math.abs(reply.exp - seconds() - 300)).toBeLessThanOrEqual(2);
    const { act } = await opened(space, reply.token);
    expect(act).toMatchObject({ owner, actor, scope: ["run"], parent: `${owner}.cli` });
  });

  it("finds its manager like a person's", async () => {
    const actor = await agent();
    const running = await manager(space, owner);
    expect((await ask({ actor, view: "manager-caller" })).managerInstanceId).toBe(running);
    expect((await ask({ actor, view: "manager-caller", managerInstanceId: running })).managerInstanceId).toBe(running);
  });

  it("refuses absent, wrong, revoked and interactive alike", async () => {
    const known = await agent();
    const revoked = await agent({ state: "revoked" });
    const tries = [
      { actor: "absent" },
      { actor: known, actorToken: "wrong" },
      { actor: revoked },
      { actor: "cli" },
      { actor: known, owner: "local" },
    ];
    const bodies = new Set<string>();
    for (const args of tries) {
      const { code, message, details, outcome } = await refusal(ask(args));
      bodies.add(JSON.stringify({ code, message, details, outcome }));
    }
    expect(bodies.size).toBe(1);
    expect([...bodies][0]).toContain('"unauthenticated"');
  });

  it("gives no view of a person's", async () => {
    const actor = await agent();
    expect(await codeOf(ask({ actor, view: "admin" }))).toBe("permission-denied");
    expect(await codeOf(ask({ actor, view: "channel-writer" }))).toBe("permission-denied");
    expect(await codeOf(ask({ actor, view: "session-caller" }))).toBe("permission-denied");
    expect(await codeOf(ask({ actor, view: "manager-service" }))).toBe("unimplemented");
  });

  it("has closed arguments", async () => {
    const actor = await agent();
    for (const more of [
      { actorToken: "" },
      { actorToken: "a".repeat(4_097) },
      { managerInstanceId: "i".repeat(26) },
      { idpToken: "x" },
      { ttlSec: 4 },
      { view: "root" },
    ]) {
      expect(await codeOf(ask({ actor, ...more }))).toBe("bad-request");
    }
  });

  it("ends where its parent does not cover it any more", async () => {
    const within = {
      scope: scopes("run"),
      role: "reviewer" as NonNullable<Actor["role"]>,
      allowSubscribe: [ChannelPattern.parse("team.a.b")],
      allowPublish: [ChannelPattern.parse("team.a")],
    };
    const actor = await agent(within);
    await ask({ actor });
    const narrowed: Partial<Actor>[] = [
      { scope: scopes("run") },
      { scope: scopes("role:reviewer") },
      { allowSubscribe: [ChannelPattern.parse("team.*")] },
      { allowPublish: [] },
      { state: "revoked" },
    ];
    for (const change of narrowed) {
      await space.put(actorRows.key(parent), { ...parent, ...change });
      const { code, message } = await refusal(ask({ actor }));
      expect([code, message]).toEqual(["permission-denied", "the parent chain does not hold"]);
    }
    await space.put(actorRows.key(parent), parent);
    await ask({ actor });
    const orphan = await agent({ parent: `${owner}.nobody` as NonNullable<Actor["parent"]> });
    expect(await codeOf(ask({ actor: orphan }))).toBe("permission-denied");
  });

  it("needs head, gate and root like a person's", async () => {
    const frozen = { state: "frozen" as const, op: { opId: parent.lifecycleUid, kind: "retirement" as const } };
    expect(await codeOf(ask({ actor: await agent({}, { gate: frozen }) }))).toBe("permission-denied");
    expect(await codeOf(ask({ actor: await agent({}, { root: { state: "revoked" } }) }))).toBe("permission-denied");
  });

  it("never logs a token", async () => {
    const actor = await agent();
    const { token } = await ask({ actor });
    await codeOf(ask({ actor, actorToken: "wrong-and-secret" }));
    const log = exchange.lines.join("");
    for (const secret of [token, TOKEN, "wrong-and-secret"]) expect(log).not.toContain(secret);
  });
});
