import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AuthorityClient } from "../../../shared/client.ts";
import { exchangeUser } from "../../../shared/contracts/exchange/exchange-user.ts";
import type { Operation } from "../../../shared/contracts/operation.ts";
import type { AuthorityError } from "../../../shared/errors.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { epGateRows } from "../../../shared/rows/gate.ts";
import { type Session, sessionRows } from "../../../shared/rows/session.ts";
import { CredentialId, Owner, Principal, principalOf, SessionId, Uid } from "../../../shared/tokens.ts";
import { type OidcProvider, startOidcProvider } from "../../kit/idp.ts";
import { login, ownerOf, pin, seconds } from "../../kit/logins.ts";
import type { TestSpace } from "../../kit/space.ts";
import { codeOf, type ExchangeSpace, opened, refusal, startExchangeSpace } from "./asking.ts";
import { activate, agentOf, MANAGER, manager, scopes } from "./ledger.ts";

let provider: OidcProvider;
let exchange: ExchangeSpace;
let space: TestSpace;
let publicFace: AuthorityClient;
let loopback: AuthorityClient;

beforeAll(async () => {
  provider = await startOidcProvider();
  const { keys: _, ...rest } = pin;
  const unreachable = { ...rest, issuer: "https://away.example", jwksUri: "http://127.0.0.1:9/jwks" };
  exchange = await startExchangeSpace({ pins: [pin, provider.pin, unreachable] });
  space = exchange.space;
  publicFace = await space.client("gateway_public");
  loopback = await space.client("gateway_loopback");
});
afterAll(async () => {
  await exchange.stop();
  await provider.stop();
});

type Reply = { token: string; owner: string; exp: number; managerInstanceId?: string };

/** Arguments as anybody may send them: what is wrong with them is for the exchange to say. */
const ask = (args: object, auth?: string, client = publicFace): Promise<Reply> =>
  client.call<Operation>(exchangeUser, args, { once: true, ...(auth === undefined ? {} : { auth }) }) as Promise<Reply>;

let people = 0;
/** A person with an active actor `cli`. */
async function person(changes: Parameters<typeof activate>[3] = {}) {
  people += 1;
  const subject = `person-${people}`;
  const owner = await ownerOf(space, subject);
  const row = await activate(space, owner, "cli", changes);
  return { owner, row, auth: login(subject), loginWith: (more: object) => login(subject, more) };
}

describe("a person's exchange", () => {
  it("turns a real login into a bearer for the actor's row", async () => {
    const owner = await ownerOf(space, "alice", provider.pin.issuer);
    const row = await activate(space, owner, "cli", { row: { scope: scopes("spawn", "run") } });
    const reply = await ask({ actor: "cli" }, await provider.login("alice"));
    expect(reply).toEqual({ token: expect.any(String), owner, exp: expect.any(Number) });
    const { act, ...claims } = await opened(space, reply.token);
    expect(claims).toMatchObject({ sub: owner, aud: "demo", iss: "urn:cotal:auth:demo", scope: ["spawn", "run"] });
    expect(act).toEqual({
      owner,
      actor: "cli",
      scope: ["spawn", "run"],
      lifecycleUid: row.lifecycleUid,
      credentialId: expect.stringMatching(/^root-/),
    });
  });

  it("gives the shortest of ttl, cap, proof and root", async () => {
    const { auth, loginWith } = await person();
    const life = async (args: object, proof = auth) => (await ask({ actor: "cli", ...args }, proof)).exp - seconds();
    const about = (expected: number) => (left: number) => Math.abs(left - expected) <= 2;
    expect(await life({})).toSatisfy(about(600)); // the proof's
    expect(await life({}, loginWith({ exp: seconds() + 3_600 }))).toSatisfy(about(900)); // the cap
    expect(await life({ ttlSec: 60 })).toSatisfy(about(60));
    const short = await person({ root: { exp: Date.now() + 30_000 } });
    expect(await life({}, short.auth)).toSatisfy(about(30));
  });

  it("tells a proven person without an active interactive row which owner it is", async () => {
    const owner = await ownerOf(space, "nobody");
    const parent = await person();
    await activate(space, owner, "revoked", { row: { state: "revoked" } });
    await activate(space, owner, "agent", { row: agentOf(parent.row) });
    for (const actor of ["absent", "revoked", "agent"]) {
      const error = await refusal(ask({ actor }, login("nobody")));
      expect(error.code).toBe("permission-denied");
      expect(error.details).toEqual([{ kind: "ai.cotal.auth.no-actor", owner, actor }]);
    }
  });

  it("needs a proof that verifies, and tells nothing about one that does not", async () => {
    const { loginWith, auth } = await person();
    const texts = new Set<string>();
    for (const bad of [
      loginWith({ exp: seconds() - 6 }),
      loginWith({ aud: ["mesh", "x"] }),
      "x.y.z",
      auth.slice(0, -9),
    ]) {
      const error = await refusal(ask({ actor: "cli" }, bad));
      expect(error.code).toBe("unauthenticated");
      texts.add(error.message);
    }
    expect(texts.size).toBe(1);
    expect(await codeOf(ask({ actor: "cli" }))).toBe("unauthenticated");
  });

  it("answers expired to a proof within its skew, and unavailable without the provider's keys", async () => {
    const { loginWith } = await person();
    expect(await codeOf(ask({ actor: "cli" }, loginWith({ exp: seconds() - 3 })))).toBe("expired");
    expect(await codeOf(ask({ actor: "cli" }, loginWith({ iss: "https://away.example" })))).toBe("unavailable");
  });

  it("denies an incarnation that is not active from head to root", async () => {
    const other = Uid.parse("z".repeat(26));
    const cases: Parameters<typeof activate>[3][] = [
      { head: { state: "retiring", op: { opId: other, kind: "retirement" } } },
      { head: { lifecycleUid: other } },
      { gate: { state: "frozen", op: { opId: other, kind: "retirement" } } },
      { gate: { state: "retired", op: { opId: other, kind: "retirement" } } },
      { root: "absent" },
      { root: { state: "revoked" } },
      { root: { exp: Date.now() - 1 } },
      { root: { holderPrincipal: Principal.parse("local.other") } },
    ];
    for (const changes of cases) {
      const { auth } = await person(changes);
      const error = await refusal(ask({ actor: "cli" }, auth));
      expect([error.code, error.message, error.details]).toEqual([
        "permission-denied",
        "this incarnation is not active",
        [],
      ]);
    }
  });

  it("keeps a garbled row from being read as absent", async () => {
    const { auth, owner, row } = await person();
    const key = actorRows.key({ owner, actor: row.actor });
    await space.put(key, { ...row, more: 1 } as typeof row);
    expect(await codeOf(ask({ actor: "cli" }, auth))).toBe("internal");
  });

  it("writes nothing, whatever it answers", async () => {
    const { auth } = await person();
    const before = await Promise.all([space.store.lastSeq("auth"), space.store.lastSeq("connect")]);
    await ask({ actor: "cli" }, auth);
    await codeOf(ask({ actor: "absent" }, auth));
    expect(await Promise.all([space.store.lastSeq("auth"), space.store.lastSeq("connect")])).toEqual(before);
  });

  it("never logs a token", async () => {
    const { auth } = await person();
    const { token } = await ask({ actor: "cli" }, auth);
    const log = exchange.lines.join("");
    expect(log).toContain('"owner":"u_');
    expect(log).not.toContain(token);
    expect(log).not.toContain(auth);
  });
});

describe("the view", () => {
  it("is given on its faces alone, to whoever has its scope", async () => {
    const admin = await person({ row: { scope: scopes("admin") } });
    const plain = await person({ row: { scope: scopes("run", "supervise") } });
    const spawner = await person({ row: { scope: scopes("spawn") } });
    const views = ["channel-writer", "channel-purger", "admin", "purger", "deployer"];
    const answers = async (auth: string, client: AuthorityClient) =>
      Promise.all(
        views.map((view) =>
          ask({ actor: "cli", view }, auth, client).then(
            () => "ok",
            (error: AuthorityError) => error.code,
          ),
        ),
      );
    const no = "permission-denied";
    expect(await answers(admin.auth, publicFace)).toEqual(["ok", "ok", no, no, no]);
    expect(await answers(admin.auth, loopback)).toEqual(["ok", "ok", "ok", "ok", no]);
    expect(await answers(plain.auth, loopback)).toEqual([no, no, no, no, no]);
    expect(await answers(spawner.auth, loopback)).toEqual([no, no, no, no, "ok"]);
  });

  it("comes with its argument, and the argument with its view", async () => {
    const { auth } = await person({ row: { scope: scopes("admin") } });
    const sessionGrant = { endpoint: "manager", sessionId: "s".repeat(22), epoch: 0, grantSig: "x" };
    const transferWriter = { instanceId: "i".repeat(26), hex: "0".repeat(64) };
    const bad = [
      { view: "root" },
      { view: "session-caller" },
      { view: "transfer-writer" },
      { managerInstanceId: "i".repeat(26) },
      { view: "admin", managerInstanceId: "i".repeat(26) },
      { sessionGrant },
      { view: "transfer-writer", sessionGrant },
      { transferWriter },
      { ttlSec: 4 },
      { ttlSec: 10.5 },
      { scope: ["admin"] },
    ];
    for (const args of bad) expect(await codeOf(ask({ actor: "cli", ...args }, auth))).toBe("bad-request");
    const { token } = await ask({ actor: "cli", view: "transfer-writer", transferWriter }, auth);
    const { act } = await opened(space, token);
    expect(act).toMatchObject({ view: "transfer-writer", transferWriter });
  });

  it("manager-service is replaced by typed operations", async () => {
    const { auth } = await person({ row: { scope: scopes("supervise") } });
    expect(await codeOf(ask({ actor: "cli", view: "manager-service" }, auth, loopback))).toBe("unimplemented");
  });
});

describe("the manager of a manager-caller", () => {
  const view = "manager-caller";
  const local = Owner.parse("local");

  it("is the owner's only running one, and the reply names it", async () => {
    const { auth, owner } = await person();
    const running = await manager(space, owner);
    await manager(space, owner, { gate: { state: "retired", op: { opId: running, kind: "retirement" } } });
    await manager(space, owner, { epoch: 2 }); // registered last under an older epoch
    const reply = await ask({ actor: "cli", view }, auth);
    expect(reply.managerInstanceId).toBe(running);
    expect((await opened(space, reply.token)).act).toMatchObject({ view, managerInstanceId: running });
  });

  it("is named where there are several, and only a live one of the owner or the space counts", async () => {
    const { auth, owner } = await person();
    const [one, two] = [await manager(space, owner), await manager(space, owner)];
    expect(await codeOf(ask({ actor: "cli", view }, auth))).toBe("failed-precondition");
    expect((await ask({ actor: "cli", view, managerInstanceId: two }, auth)).managerInstanceId).toBe(two);
    const dead = await manager(space, owner, { epoch: 9 });
    const foreign = await manager(space, await ownerOf(space, "somebody else"));
    for (const selector of [dead, foreign, "x".repeat(26)]) {
      expect(await codeOf(ask({ actor: "cli", view, managerInstanceId: selector }, auth))).toBe("not-found");
    }
    const spaces = await manager(space, local);
    expect((await ask({ actor: "cli", view, managerInstanceId: spaces }, auth)).managerInstanceId).toBe(spaces);
    expect(one).not.toBe(two);
    await space.put(epGateRows.key({ endpoint: MANAGER, instanceId: spaces }), {
      state: "retired",
      generation: 1,
      op: { opId: spaces, kind: "retirement" },
      processEpoch: 3,
      registrationRevision: 7,
      nameAuthorityRevision: 0,
      principal: principalOf(local, "x" as never),
    });
  });

  it("is the space's own only for an owner without any", async () => {
    const none = await person();
    const gone = await person();
    await manager(space, gone.owner, { epoch: 1 });
    expect(await codeOf(ask({ actor: "cli", view }, none.auth))).toBe("failed-precondition");
    const spaces = await manager(space, local);
    expect((await ask({ actor: "cli", view }, none.auth)).managerInstanceId).toBe(spaces);
    expect(await codeOf(ask({ actor: "cli", view }, gone.auth))).toBe("failed-precondition");
  });
});

describe("the session of a session-caller", () => {
  const view = "session-caller";

  async function open(changes: Partial<Session> = {}) {
    const { auth, owner, row } = await person();
    const instanceId = await manager(space, owner);
    const sessionId = SessionId.parse(`session-${instanceId}`);
    await space.put(sessionRows.key({ sessionId }), {
      sessionId,
      endpoint: MANAGER,
      serving: { instanceId, epoch: 3 },
      holder: { principal: principalOf(owner, row.actor), lifecycleUid: row.lifecycleUid },
      holderCredentialId: CredentialId.parse(`h-${sessionId}`),
      servingCredentialId: CredentialId.parse(`sha256-${"0".repeat(64)}`),
      grantSig: "signature",
      state: "active",
      exp: Date.now() + 120_000,
      ...changes,
    });
    const sessionGrant = { endpoint: "manager", sessionId, epoch: 3, grantSig: "signature" };
    return { auth, sessionGrant, instanceId };
  }

  it("stands with its own end, and bounds the bearer", async () => {
    const { auth, sessionGrant } = await open();
    const reply = await ask({ actor: "cli", view, sessionGrant }, auth);
    const { act, exp } = await opened(space, reply.token);
    expect(act.session).toEqual({ endpoint: "manager", sessionId: sessionGrant.sessionId, epoch: 3, exp });
    expect(Math.abs(exp - seconds() - 120)).toBeLessThanOrEqual(2);
  });

  it("is denied with one sentence, whatever is wrong with it", async () => {
    const grants = [
      { grantSig: "signaturE" },
      { grantSig: "other" },
      { sessionId: "x".repeat(22) },
      { epoch: 2 },
      { endpoint: "delivery" },
    ];
    const rows: Partial<Session>[] = [
      { state: "closed" },
      { exp: Date.now() - 1 },
      { holder: { principal: Principal.parse("local.other"), lifecycleUid: Uid.parse("a".repeat(26)) } },
      { serving: { instanceId: Uid.parse("y".repeat(26)), epoch: 3 } },
    ];
    const texts = new Set<string>();
    for (const grant of grants) {
      const { auth, sessionGrant } = await open();
      const error = await refusal(ask({ actor: "cli", view, sessionGrant: { ...sessionGrant, ...grant } }, auth));
      texts.add(`${error.code}: ${error.message}`);
    }
    for (const row of rows) {
      const { auth, sessionGrant } = await open(row);
      const error = await refusal(ask({ actor: "cli", view, sessionGrant }, auth));
      texts.add(`${error.code}: ${error.message}`);
    }
    expect([...texts]).toEqual(["permission-denied: the session is not open to you"]);
  });

  it("is another person's to nobody", async () => {
    const { sessionGrant } = await open();
    const other = await person();
    expect(await codeOf(ask({ actor: "cli", view, sessionGrant }, other.auth))).toBe("permission-denied");
  });
});
