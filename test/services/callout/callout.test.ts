import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { explain } from "../../../services/callout/explain.ts";
import { startCallout } from "../../../services/callout/start.ts";
import type { RunningService } from "../../../services/service.ts";
import { isAuthorityError } from "../../../shared/errors.ts";
import { acceptedToken, confirm } from "../../../shared/issued.ts";
import { runCloseSteps } from "../../../shared/nats/owned.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { acceptedRows } from "../../../shared/rows/accepted.ts";
import { inboxRows } from "../../../shared/rows/connect.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import { issuedRows } from "../../../shared/rows/issued.ts";
import { subjectOf } from "../../../shared/store/streams.ts";
import { EndpointLabel, Principal, Scope, Space, type Uid } from "../../../shared/tokens.ts";
import { alice, bob, freshNonce, grant, type Identity, install, keysOf, space } from "./people.ts";
import { startSpace, type TestSpace } from "./space.ts";

const ports = systemPorts;
let at: TestSpace;
let service: RunningService;
let close: () => Promise<void>;
const lines: string[] = [];

beforeAll(async () => {
  at = await startSpace();
  const deps = await at.deps(lines);
  service = await startCallout(deps);
  close = async () => {
    await service.close();
    await runCloseSteps(deps.owned.closeSteps("callout", "work:callout", "store:callout"));
  };
});
afterAll(async () => {
  await close();
  await at.stop();
});

/** The reference and code that the broker logged for the latest denial. */
async function latestDenial(from: number): Promise<{ code: string; ref: string }> {
  const found = await vi.waitFor(() => {
    const match = /returned an error: (\S+) ref=(\S+)/.exec(at.broker.log().slice(from));
    if (!match) throw new Error("no denial in the broker's log");
    return match;
  });
  return { code: found[1] ?? "", ref: found[2] ?? "" };
}

async function denied(token: string, nonce: string): Promise<{ code: string; check: string | undefined }> {
  const from = at.broker.log().length;
  const began = performance.now();
  const error = await at.connect(token, nonce).catch((cause: unknown) => cause);
  expect(isAuthorityError(error, "unauthenticated")).toBe(true);
  expect(performance.now() - began).toBeLessThan(2_000); // the broker's own limit is 5 s
  const { code, ref } = await latestDenial(from);
  const explanation = await vi.waitFor(async () => {
    const found = await explain(lines, ref);
    if (!found) throw new Error("no line for the reference");
    return found;
  });
  expect(explanation.line.code).toBe(code);
  return { code, check: explanation.line.check };
}

const inboxOf = (nonce: ReturnType<typeof freshNonce>) => at.store.read(inboxRows.key({ nonce }));

async function person(options: Parameters<typeof grant>[0] = {}): Promise<Identity> {
  return install(at, grant({ actor: `cli_${newUid(ports)}`, ...options }));
}

/** Whether a publish is refused by the broker. */
async function refusesPublish(connection: NatsConnection, subject: string): Promise<boolean> {
  const violations: string[] = [];
  const stop = (async () => {
    for await (const status of connection.status()) {
      if (status.type === "error") violations.push(status.error.message);
    }
  })();
  connection.publish(subject, "x");
  await connection.flush();
  await connection.close();
  await stop;
  return violations.some((text) => text.includes("Permissions Violation for Publish"));
}

describe("a bearer connects", () => {
  test("and gets exactly its permissions, its inbox and its name", async () => {
    const who = await person({ allowPublish: ["out"], allowSubscribe: ["in"] });
    const nonce = freshNonce();
    const client = await at.connect(await at.bearers.bearer(who), nonce);
    const heard: string[] = [];
    const listening = at.space.subscribe("cotal.demo.chat.>", {
      callback: (_error, message) => void heard.push(message.subject),
    });
    await at.space.flush();
    const own = `cotal.demo.chat.${who.owner}.${who.actor}.out`;
    client.publish(own, "hello");
    await vi.waitFor(() => expect(heard).toEqual([own]));
    const inbox: string[] = [];
    client.subscribe(`_INBOX_${nonce}.>`, { callback: (_error, message) => void inbox.push(message.subject) });
    await client.flush();
    at.space.publish(`_INBOX_${nonce}.1`, "reply");
    await vi.waitFor(() => expect(inbox).toEqual([`_INBOX_${nonce}.1`]));
    const foreign = client.subscribe(`_INBOX_${freshNonce()}.>`, { callback: () => {} });
    expect(String(await foreign.closed)).toContain("Permissions Violation for Subscription");
    listening.unsubscribe();
    await client.close();
  });

  test.each([
    ["another's chat", `cotal.demo.chat.${bob}.cli.out`],
    ["another channel", `cotal.demo.chat.${alice}.cli.secret`],
    ["a row", "$KV.cotal_connect_demo.trust"],
    ["the system", "$SYS.REQ.SERVER.PING"],
    ["the authority's operations", `cotal.demo.ep.one.auth.actor-grant.${alice}.cli.x.y`],
  ])("and a publish to %s is refused", async (_what, subject) => {
    const who = await person();
    const client = await at.connect(await at.bearers.bearer(who), freshNonce());
    expect(await refusesPublish(client, subject)).toBe(true);
  });

  test("and its row is held for its bearer's life and 60 s", async () => {
    const who = await person();
    const nonce = freshNonce();
    const client = await at.connect(await at.bearers.bearer(who, { ttlS: 120 }), nonce);
    const message = await rawInbox(nonce);
    const { owner, actor, uid } = who;
    const row = JSON.parse(Buffer.from(message.data, "base64").toString());
    expect(row).toMatchObject({ owner, actor, lifecycleUid: uid });
    const ttl = Number(/Nats-TTL: (\d+)s/.exec(Buffer.from(message.hdrs, "base64").toString())?.[1]);
    expect(ttl).toBeGreaterThanOrEqual(175);
    expect(ttl).toBeLessThanOrEqual(181);
    await client.close();
  });

  test("and again under its nonce with 5 s left: admitted, the row keeps the first one's exp", async () => {
    const who = await person();
    const nonce = freshNonce();
    const first = await at.connect(await at.bearers.bearer(who, { ttlS: 600 }), nonce);
    const held = await inboxOf(nonce);
    const second = await at.connect(await at.bearers.bearer(who, { ttlS: 5 }), nonce);
    expect((await inboxOf(nonce))?.value).toEqual(held?.value);
    const message = await rawInbox(nonce);
    const ttl = Number(/Nats-TTL: (\d+)s/.exec(Buffer.from(message.hdrs, "base64").toString())?.[1]);
    expect(ttl).toBeGreaterThan(600);
    await Promise.all([first.close(), second.close()]);
  });
});

async function rawInbox(nonce: ReturnType<typeof freshNonce>): Promise<{ data: string; hdrs: string }> {
  const subject = subjectOf("connect", space, inboxRows.key({ nonce }).key);
  const answer = await at.authority.request(
    "$JS.API.STREAM.MSG.GET.KV_cotal_connect_demo",
    JSON.stringify({ last_by_subj: subject }),
  );
  return answer.json<{ message: { data: string; hdrs: string } }>().message;
}

describe("a denial names its code and its reference, and comes at once:", () => {
  test("without bearer, with one of another space, with a removed kid", async () => {
    const who = await person();
    const nonce = freshNonce();
    expect(await denied("", nonce)).toEqual({ code: "unauthenticated", check: "proof" });
    const foreign = await at.bearers.bearer(who, { space: Space.parse("other") });
    expect(await denied(foreign, nonce)).toEqual({ code: "unauthenticated", check: "proof" });
    const removed = await at.bearers.bearer(who, { kid: "removed" });
    expect(await denied(removed, nonce)).toEqual({ code: "unauthenticated", check: "proof" });
    expect(await inboxOf(nonce)).toBeUndefined();
  });

  test("with a scope wider than the row, with the former incarnation's bearer", async () => {
    const who = await person({ scope: ["run"] });
    const nonce = freshNonce();
    const wide = { scope: [Scope.parse("run"), Scope.parse("admin")] };
    expect(await denied(await at.bearers.bearer(who, { act: wide }), nonce)).toEqual({
      code: "permission-denied",
      check: "actor",
    });
    const token = await at.bearers.bearer(who);
    await install(at, { ...who, uid: newUid(ports), row: { ...who.row, lifecycleUid: newUid(ports) } });
    expect(await denied(token, nonce)).toEqual({ code: "permission-denied", check: "actor" });
    expect(await inboxOf(nonce)).toBeUndefined();
  });

  test("with an expired bearer", async () => {
    const token = await at.bearers.bearer(await person(), { ttlS: 5, now: Date.now() - 20_000 });
    expect(await denied(token, freshNonce())).toEqual({ code: "expired", check: "proof" });
  });

  test("under a name that is short, dotted or an nkey", async () => {
    const token = await at.bearers.bearer(await person());
    for (const name of ["short", `${freshNonce()}.x`, at.sentinel.key.public]) {
      expect(await denied(token, name)).toEqual({ code: "bad-request", check: "nonce" });
    }
  });

  test("under another's live nonce", async () => {
    const nonce = freshNonce();
    const client = await at.connect(await at.bearers.bearer(await person()), nonce);
    const held = await inboxOf(nonce);
    const other = await person({ owner: bob });
    expect(await denied(await at.bearers.bearer(other), nonce)).toEqual({ code: "permission-denied", check: "inbox" });
    expect(await inboxOf(nonce)).toEqual(held);
    await client.close();
  });

  test("with permissions over 16 KiB", async () => {
    const channels = Array.from({ length: 64 }, (_, i) => `channel-${i}-${"x".repeat(60)}`);
    const who = await person({ allowSubscribe: channels });
    const nonce = freshNonce();
    const outcome = await denied(await at.bearers.bearer(who), nonce);
    expect(outcome).toEqual({ code: "resource-exhausted", check: "permissions" });
    expect(await inboxOf(nonce)).toBeUndefined();
  });

  test("once the gate is frozen or the actor revoked", async () => {
    const who = await person();
    const token = await at.bearers.bearer(who);
    const op = { opId: newUid(ports), kind: "retirement" as const };
    await at.put(keysOf(who).gate, { lifecycleUid: who.uid, state: "frozen", generation: 1, op });
    expect(await denied(token, freshNonce())).toEqual({ code: "permission-denied", check: "root" });
    await at.put(keysOf(who).row, { ...who.row, state: "revoked" });
    expect(await denied(token, freshNonce())).toEqual({ code: "permission-denied", check: "actor" });
  });
});

describe("an issued connection", () => {
  async function managed(): Promise<{ who: Identity; instanceId: Uid; bearer: () => Promise<string> }> {
    const who = await person();
    const instanceId = newUid(ports);
    await putManager(instanceId);
    const act = { view: "manager-caller" as const, managerInstanceId: instanceId };
    return { who, instanceId, bearer: () => at.bearers.bearer(who, { act }) };
  }

  test("finds its generation, asks under it alone, and renews it", async () => {
    const { who, instanceId, bearer } = await managed();
    const nonce = freshNonce();
    const client = await at.connect(await bearer(), nonce);
    const key = acceptedRows.key({ token: acceptedToken(nonce) });
    const subject = subjectOf("accepted", space, key.key);
    const answer = await client.request(`$JS.API.DIRECT.GET.KV_cotal_accepted_demo.${subject}`);
    const caller = { owner: who.owner, actor: who.actor, uid: who.uid };
    const accepted = acceptedRows.decode(key.key, answer.data);
    if (!accepted) throw new Error("no accepted row");
    const ref = confirm(accepted, caller);
    const evidence = await at.store.nextRow(issuedRows.key(ref), 1);
    expect(evidence?.value).toMatchObject({
      ref,
      sources: [{ bucket: "cotal_actors_demo" }, { key: `cred.${who.uid}` }],
    });
    const tail = `manager.${instanceId}.status.${who.owner}.${who.actor}.${who.uid}`;
    const heard: string[] = [];
    const listening = at.space.subscribe("cotal.demo.ep.>", {
      callback: (_error, message) => void heard.push(message.subject),
    });
    await at.space.flush();
    const ask = `cotal.demo.ep.v1.inst.${tail}.${ref.generation}.${freshNonce()}`;
    client.publish(ask, "x");
    await vi.waitFor(() => expect(heard).toEqual([ask]));
    listening.unsubscribe();
    expect(await refusesPublish(client, `cotal.demo.ep.inst.${tail}.${freshNonce()}`)).toBe(true);
    const again = await at.connect(await bearer(), nonce);
    expect((await at.store.read(key))?.value.ref).toEqual(ref);
    await again.close();
  });

  test("with other permissions under the same nonce is refused; under a fresh one it is not", async () => {
    const { who, bearer } = await managed();
    const nonce = freshNonce();
    const client = await at.connect(await bearer(), nonce);
    const other = newUid(ports);
    await putManager(other);
    const act = { view: "manager-caller" as const, managerInstanceId: other };
    const changed = await at.bearers.bearer(who, { act });
    expect(await denied(changed, nonce)).toEqual({ code: "failed-precondition", check: "issued" });
    const fresh = await at.connect(changed, freshNonce());
    await Promise.all([client.close(), fresh.close()]);
  });
});

test("nobody but the broker can ask", async () => {
  // Even a user of the callout account that may publish everything.
  await expect(at.callout.request("$SYS.REQ.USER.AUTH", "x", { timeout: 1_000 })).rejects.toThrow(
    "Permissions Violation for Publish",
  );
});

test("statistics are the service's own, integers, asynchronous part included", async () => {
  const operator = await at.operator();
  const info = (await operator.request("$SRV.INFO.callout")).json<Record<string, unknown>>();
  expect(info).toMatchObject({
    name: "callout",
    metadata: { space: "demo", epoch: "0", registrationRevision: "0" },
    endpoints: [{ name: "authorize", subject: "$SYS.REQ.USER.AUTH", queue_group: "cotal-auth-callout" }],
  });
  const stats = (await operator.request("$SRV.STATS.callout")).json<{ endpoints: Record<string, unknown>[] }>();
  const [endpoint] = stats.endpoints;
  const { num_requests, num_errors, processing_time, average_processing_time, data } = endpoint as Record<
    string,
    number
  > & { data: { inFlight: number; codes: Record<string, number> } };
  for (const number of [num_requests, num_errors, processing_time, average_processing_time]) {
    expect(Number.isSafeInteger(number)).toBe(true);
    expect(number).toBeGreaterThan(0);
  }
  expect(data.inFlight).toBe(0);
  expect(data.codes).toMatchObject({ "permission-denied": expect.any(Number) });
});

test("no line of the log holds a bearer, a JWT or a seed", () => {
  const text = lines.join("");
  expect(text).not.toMatch(/eyJ[A-Za-z0-9_-]{20}/);
  expect(text).not.toMatch(/\bS[UAXNO][A-Z2-7]{56}\b/);
});

async function putManager(instanceId: Uid): Promise<void> {
  await at.put(epGateRows.key({ endpoint: EndpointLabel.parse("manager"), instanceId }), {
    state: "open",
    generation: 1,
    processEpoch: 1,
    registrationRevision: 1,
    nameAuthorityRevision: 1,
    principal: Principal.parse(`${alice}.manager_serve_${instanceId}`),
  });
}
