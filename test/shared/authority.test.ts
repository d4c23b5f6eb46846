import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Authority, authority } from "../../shared/authority.ts";
import { authApi } from "../../shared/contracts/auth.ts";
import type { Operation } from "../../shared/contracts/operation.ts";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { provisionedUser } from "../../shared/credentials/users.ts";
import { newNonce, systemPorts } from "../../shared/ports.ts";
import { callsOf } from "../../shared/result.ts";
import { loadCreds } from "../../shared/secrets/keys.ts";
import { Actor, Owner, RequestId, Space } from "../../shared/tokens.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { runExample } from "./example.ts";

let space: TestSpace;
let connection: NatsConnection;
let parts: Omit<Parameters<typeof authority>[0], "name" | "ports">;
let ask: Authority;

beforeAll(async () => {
  space = await startSpace({ services: ["auth", "exchange"] });
  const creds = await loadCreds(space.secrets, space.space, "operator");
  const key = keyPairFromSeed(creds.seed);
  connection = await space.enter("operator", { jwt: creds.jwt, key });
  const { owner, actor, uid } = provisionedUser(space.space, "operator", key.public);
  parts = { connection, space: space.space, caller: { owner, actor, uid }, inboxPrefix: `_INBOX_${key.public}` };
  ask = authority({ ...parts, name: "test", ports: systemPorts });
});
afterAll(() => space.stop());

const requestId = (): RequestId => RequestId.parse(newNonce(systemPorts));
const owner = Owner.parse(`u_${"a".repeat(26)}`);
const grant = (actor: string, more: object = {}) => ({
  requestId: requestId(),
  owner,
  actor: Actor.parse(actor),
  scope: [],
  allowSubscribe: [],
  allowPublish: [],
  ...more,
});

describe("the authority, asked by name", () => {
  it("has one function per operation, under the operation's own words", () => {
    const camel = (name: string) => name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    for (const [name, operation] of Object.entries<Operation>(authApi)) expect(camel(operation.name)).toBe(name);
    expect(Object.keys(ask)).toEqual(Object.keys(authApi));
  });

  it("gives data, or a refusal with code, outcome and details", async () => {
    const granted = await ask.actorGrant(grant("cli"));
    expect(granted).toMatchObject({ ok: true, data: { owner, actor: "cli" } });
    const again = await ask.actorGrant(grant("cli", { allowPublish: ["team"] }));
    expect(again).toMatchObject({
      ok: false,
      error: {
        code: "failed-precondition",
        outcome: "not-executed",
        details: [{ kind: "ai.cotal.auth.current-lifecycle", lifecycleUid: granted.ok && granted.data.lifecycleUid }],
      },
    });
    expect(await ask.describe(null)).toMatchObject({ ok: true });
  });

  it("says that silence is unknown, and a request that nobody heard was not made", async () => {
    const elsewhere = authority({
      ...parts,
      connection: space.roots.space,
      inboxPrefix: "_INBOX",
      space: Space.parse("nowhere"),
      name: "test",
      ports: systemPorts,
    });
    const list = { requestId: requestId() };
    const unheard = await elsewhere.actorList(list, { deadlineMs: 300 });
    expect(unheard).toMatchObject({ ok: false, error: { code: "unavailable", outcome: "not-executed" } });
    let heard = 0;
    const silent = space.roots.space.subscribe("cotal.nowhere.ep.one.auth.>", {
      callback: () => {
        heard += 1;
      },
    });
    await space.roots.space.flush();
    const unanswered = await elsewhere.actorGrant(grant("cli"), { deadlineMs: 300 });
    expect(unanswered).toMatchObject({ ok: false, error: { code: "unavailable", outcome: "unknown" } });
    expect(heard).toBe(1);
    silent.unsubscribe();
  });

  it("asks again what was not executed, until it is answered or given up", async () => {
    let heard = 0;
    const busy = space.roots.space.subscribe("cotal.busy.ep.one.auth.>", {
      callback: (_error, message) => {
        heard += 1;
        const { id } = message.json<{ id: string }>();
        const error = { code: "resource-exhausted", message: "full", outcome: "not-executed" };
        message.respond(JSON.stringify({ v: 1, id, ok: false, error }));
        if (heard === 2) giveUp.abort();
      },
    });
    await space.roots.space.flush();
    const giveUp = new AbortController();
    const client = authority({
      ...parts,
      connection: space.roots.space,
      inboxPrefix: "_INBOX",
      space: Space.parse("busy"),
      name: "test",
      ports: systemPorts,
    });
    const once = await client.actorGrant(grant("cli"), { once: true });
    expect(once).toMatchObject({ ok: false, error: { code: "resource-exhausted" } });
    const given = await client.actorGrant(grant("cli"), { signal: giveUp.signal });
    expect(given).toMatchObject({ ok: false, error: { code: "cancelled", outcome: "not-executed" } });
    expect(heard).toBe(2);
    busy.unsubscribe();
  });

  it("throws what is no refusal: a fault of the program's own", async () => {
    const faulty = callsOf({ describe: authApi.describe }, () => Promise.reject(new TypeError("a bug")));
    await expect(faulty.describe(null)).rejects.toThrow(TypeError);
  });
});

it("is used as its own example shows", async () => {
  const printed = await runExample("shared/authority.ts", { ...parts, requestId: requestId() });
  expect(printed).toEqual(["1"]);
});
