import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openFaces } from "../../gateway/start.ts";
import { OwnedConnections, runCloseSteps } from "../../shared/nats/owned.ts";
import { systemPorts } from "../../shared/ports.ts";
import { actorRows } from "../../shared/rows/actor.ts";
import { freePorts } from "../kit/broker.ts";
import { login, ownerOf, pin, seconds } from "../kit/logins.ts";
import type { TestSpace } from "../kit/space.ts";
import { sequences } from "../kit/unchanged.ts";
import { type ExchangeSpace, startExchangeSpace } from "../services/exchange/asking.ts";
import { activate, agentOf, scopes, TOKEN } from "../services/exchange/ledger.ts";

let exchange: ExchangeSpace;
let space: TestSpace;
let owned: OwnedConnections;
let faces: Awaited<ReturnType<typeof openFaces>>;
beforeAll(async () => {
  const { keys: _, ...unkeyed } = pin;
  const unreachable = { ...unkeyed, issuer: "https://away.example", jwksUri: "http://127.0.0.1:9/jwks" };
  exchange = await startExchangeSpace({ pins: [pin, unreachable] });
  space = exchange.space;
  owned = new OwnedConnections({ servers: space.servers }, systemPorts);
  const [port = 0] = await freePorts(1);
  faces = await openFaces({
    space: space.space,
    port: 0,
    publicFace: { port, url: `http://127.0.0.1:${port}`, trustedProxy: false },
    secrets: space.secrets,
    owned,
    ports: systemPorts,
    log: pino({ level: "silent" }),
  });
});
afterAll(async () => {
  await Promise.all(faces.map((face) => face.close()));
  await runCloseSteps(owned.closeSteps(""));
  await exchange.stop();
});

type Answer = { readonly status: number; readonly code?: string; readonly error?: string };

/** Through the public face, unless the loopback one is named. */
async function exchanging(body: object, through: "public" | "loopback" = "public"): Promise<Answer> {
  const face = faces.find(({ name }) => name === through);
  const response = await fetch(`${face?.url}/exchange`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(face?.cap ? { authorization: `Bearer ${face.cap}` } : {}) },
    body: JSON.stringify(body),
  });
  const parsed: { code?: string; error?: string } = JSON.parse(await response.text());
  return { status: response.status, ...parsed };
}

let people = 0;
async function person(changes: Parameters<typeof activate>[3] = {}) {
  people += 1;
  const name = `person-${people}`;
  const owner = await ownerOf(space, name);
  return { name, owner, row: await activate(space, owner, "cli", changes) };
}

describe("a login at the gateway", () => {
  it("of a person with an active actor is a bearer, through either face", async () => {
    const { name, owner } = await person();
    for (const face of ["public", "loopback"] as const) {
      expect(await exchanging({ actor: "cli", idpToken: login(name) }, face)).toMatchObject({ status: 200, owner });
    }
  });

  it.each<[string, (name: string) => string]>([
    ["alg none", (name) => login(name, {}, { alg: "none" })],
    ["HS256", (name) => login(name, {}, { alg: "HS256" })],
    ["RS256 where the pin names none", (name) => login(name, {}, { alg: "RS256" })],
    ["ES256 where the pin names none", (name) => login(name, {}, { alg: "ES256" })],
    ["a key of its own (jku)", (name) => login(name, {}, { jku: "https://evil.example/jwks" })],
    ["another issuer", (name) => login(name, { iss: "https://evil.example" })],
    ["the issuer with a slash more", (name) => login(name, { iss: `${pin.issuer}/` })],
    ["two audiences", (name) => login(name, { aud: ["mesh", "other"] })],
    ["another audience", (name) => login(name, { aud: "other" })],
    ["an end six seconds ago", (name) => login(name, { exp: seconds() - 6 })],
    ["an unknown key", (name) => login(name, {}, { kid: "gone" })],
    ["altered claims", (name) => login(name).replace(/\.[^.]+\./, `.${login("eve").split(".")[1]}.`)],
    ["no token's form", () => "alice"],
  ])("with %s is 401, and tells nothing", async (_, token) => {
    const { name } = await person();
    const before = await sequences(space);
    expect(await exchanging({ actor: "cli", idpToken: token(name) })).toEqual({
      status: 401,
      code: "unauthenticated",
      error: "the proof of login is not valid",
    });
    expect(await sequences(space)).toEqual(before);
  });

  it("that ended four seconds ago proves its person, but too little of it is left", async () => {
    const { name } = await person();
    const idpToken = login(name, { exp: seconds() - 4 });
    expect(await exchanging({ actor: "cli", idpToken })).toMatchObject({ status: 410, code: "expired" });
  });

  it("whose provider cannot be reached is 503", async () => {
    const idpToken = login("alice", { iss: "https://away.example" });
    expect(await exchanging({ actor: "cli", idpToken })).toMatchObject({ status: 503, code: "unavailable" });
  });

  it("of somebody without an active interactive row names the owner, and no command", async () => {
    const owner = await ownerOf(space, "nobody");
    const { row } = await person();
    await activate(space, owner, "revoked", { row: { state: "revoked" } });
    await activate(space, owner, "agent", { row: agentOf(row) });
    for (const actor of ["absent", "revoked", "agent"]) {
      expect(await exchanging({ actor, idpToken: login("nobody") })).toEqual({
        status: 403,
        code: "permission-denied",
        error: `this login has no active actor of that name: owner ${owner}, actor ${actor}`,
      });
    }
  });

  it("asks for no view that the face, the scope or the argument does not carry", async () => {
    const admin = await person({ row: { scope: scopes("admin", "supervise") } });
    const plain = await person({ row: { scope: scopes("supervise") } });
    const asking = (name: string, more: object, face: "public" | "loopback" = "public") =>
      exchanging({ actor: "cli", idpToken: login(name), ...more }, face);
    expect(await asking(admin.name, { view: "admin" })).toMatchObject({ status: 403, code: "permission-denied" });
    expect(await asking(admin.name, { view: "admin" }, "loopback")).toMatchObject({ status: 200 });
    expect(await asking(plain.name, { view: "admin" }, "loopback")).toMatchObject({ status: 403 });
    for (const more of [
      { view: "root" },
      { view: "session-caller" },
      { managerInstanceId: "i".repeat(26) },
      { unknown: true },
      { ttlSec: 4 },
    ]) {
      expect(await asking(admin.name, more)).toMatchObject({ status: 400, code: "bad-request" });
    }
    expect(await asking(admin.name, { view: "manager-service" })).toMatchObject({ status: 501, code: "unimplemented" });
  });
});

describe("an agent's token at the gateway", () => {
  it("that is wrong, unknown or revoked is answered with one and the same body", async () => {
    const { owner, row } = await person();
    await activate(space, owner, "known", { row: agentOf(row) });
    await activate(space, owner, "gone", { row: agentOf(row, { state: "revoked" }) });
    const tries = [
      { actor: "absent", actorToken: TOKEN },
      { actor: "known", actorToken: "wrong" },
      { actor: "gone", actorToken: TOKEN },
      { actor: "cli", actorToken: TOKEN },
    ];
    const answers = await Promise.all(tries.map((more) => exchanging({ owner, ...more })));
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]).toMatchObject({ status: 401, code: "unauthenticated" });
    expect(await exchanging({ owner, actor: "known", actorToken: TOKEN })).toMatchObject({ status: 200 });
  });

  it("is no agent's any more once its parent was narrowed or revoked", async () => {
    const { owner, row } = await person({ row: { scope: scopes("run") } });
    await activate(space, owner, "coder", { row: agentOf(row, { scope: scopes("run") }) });
    const ask = () => exchanging({ owner, actor: "coder", actorToken: TOKEN });
    expect(await ask()).toMatchObject({ status: 200 });
    await space.put(actorRows.key(row), { ...row, scope: [] });
    expect(await ask()).toMatchObject({ status: 403, code: "permission-denied" });
    await space.put(actorRows.key(row), { ...row, state: "revoked" });
    expect(await ask()).toMatchObject({ status: 403, code: "permission-denied" });
  });

  it("opens no admin view", async () => {
    const { owner, row } = await person({ row: { scope: scopes("admin") } });
    await activate(space, owner, "helper", { row: agentOf(row, { scope: scopes("admin") }) });
    const body = { owner, actor: "helper", actorToken: TOKEN, view: "admin" };
    expect(await exchanging(body, "loopback")).toMatchObject({ status: 403, code: "permission-denied" });
  });
});
