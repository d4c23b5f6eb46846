import { describe, expect, test } from "vitest";
import { CONNECT_STEPS } from "../../../services/callout/checks.ts";
import { createKeyPair } from "../../../shared/credentials/nkeys.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { inboxRows } from "../../../shared/rows/connect.ts";
import type { Cred } from "../../../shared/rows/credential.ts";
import { Actor, type CredentialId, principalOf, Scope, Space } from "../../../shared/tokens.ts";
import {
  account,
  admitted,
  connect,
  denied,
  issuer,
  permissionsIn,
  putManager,
  signing,
  userNkey,
  world,
} from "./connecting.ts";
import { alice, bob, grant, keysOf } from "./people.ts";

const ports = systemPorts;

test("the steps are those of the chapter, in its order", () => {
  expect(CONNECT_STEPS.names).toEqual([
    "turn",
    "proof",
    "nonce",
    "rows",
    "actor",
    "root",
    "view",
    "inbox",
    "permissions",
    "issued",
    "hold",
    "unmoved",
  ]);
});

describe("an actor in order", () => {
  test("is admitted under its name, its tags and its bearer's exp, and holds its nonce", async () => {
    const w = world();
    const claims = admitted(await w.attempt({ ttlS: 60 }));
    const { owner, actor, uid, credentialId } = w.who;
    expect(claims).toMatchObject({ iss: signing.public, sub: userNkey, name: `${owner}-${actor}` });
    expect(claims.nbf).toBeUndefined();
    expect(claims.nats).toMatchObject({
      issuer_account: account.public,
      allowed_connection_types: ["STANDARD", "WEBSOCKET"],
      subs: -1,
      data: -1,
      payload: -1,
      tags: [
        `owner:${owner}`,
        `actor:${actor}`,
        `principal:${owner}.${actor}`,
        `uid:${uid}`,
        `credential:${credentialId}`,
      ],
    });
    expect(claims.nats.sub).toMatchObject({ allow: expect.arrayContaining([`_INBOX_${w.nonce}.>`]) });
    expect(w.ledger.written).toEqual([`inbox.${w.nonce}`]);
    expect(w.ledger.peek(inboxRows.key({ nonce: w.nonce }))).toEqual({
      owner,
      actor,
      lifecycleUid: uid,
      exp: (claims.exp ?? 0) * 1_000,
    });
  });

  test("is named in the log by what its bearer says, never by the bearer", async () => {
    const w = world();
    const { caller } = await w.attempt();
    const { owner, actor, uid, credentialId } = w.who;
    expect(caller).toEqual({ principal: principalOf(owner, actor), uid, credentialId, view: "agent" });
  });

  test("gets its own channel lists", async () => {
    const w = world(grant({ allowPublish: ["out"], allowSubscribe: ["in.>"], scope: ["spawn"] }));
    const { pub, sub } = permissionsIn(admitted(await w.attempt()));
    expect(pub.allow).toContain(`cotal.demo.chat.${alice}.cli.out`);
    expect(sub.allow).toContain("cotal.demo.chat.*.*.in.>");
    expect(pub.allow.some((subject) => subject.includes(".ep.one.manager.spawn.owner."))).toBe(true);
  });

  test("connects again under its nonce: the row keeps the later exp", async () => {
    const w = world();
    admitted(await w.attempt({ ttlS: 600 }));
    const first = w.ledger.peek(inboxRows.key({ nonce: w.nonce }));
    admitted(await w.attempt({ ttlS: 5 }));
    expect(w.ledger.peek(inboxRows.key({ nonce: w.nonce }))).toEqual(first);
    admitted(await w.attempt({ ttlS: 900 }));
    expect(w.ledger.peek(inboxRows.key({ nonce: w.nonce }))?.exp).toBeGreaterThan(first?.exp ?? 0);
  });
});

describe("denied, and nothing written:", () => {
  test("1. no turn in time: nothing is read", async () => {
    const w = world();
    await denied(w, w.attempt({ inTime: false }), "unavailable", "turn");
    expect(w.ledger.reads).toEqual([]);
  });

  test("1. a replica that is not ready: nothing is read", async () => {
    const w = world();
    await denied(w, w.attempt({ ready: false }), "unavailable", "turn");
    expect(w.ledger.reads).toEqual([]);
  });

  test("2. no bearer", async () => {
    const w = world();
    await denied(w, connect(w.ledger, { name: w.nonce }), "unauthenticated", "proof");
    await denied(w, connect(w.ledger, { name: w.nonce, token: "" }), "unauthenticated", "proof");
    expect(w.ledger.reads).toEqual([]);
  });

  test("2. a bearer of another space, of an unknown key, of no key", async () => {
    const w = world();
    await denied(w, w.attempt({ space: Space.parse("other") }), "unauthenticated", "proof");
    await denied(w, w.attempt({ kid: "removed" }), "unauthenticated", "proof");
    await denied(w, connect(w.ledger, { name: w.nonce, token: "a.b.c" }), "unauthenticated", "proof");
  });

  test("2. an expired bearer, though another verifier would still grant the skew", async () => {
    const w = world();
    await denied(w, w.attempt({ ttlS: 5, now: Date.now() - 20_000 }), "expired", "proof");
    await denied(w, w.attempt({ ttlS: 5, now: Date.now() - 7_000 }), "expired", "proof");
  });

  test.each([
    ["absent", undefined],
    ["short", "a".repeat(21)],
    ["long", "a".repeat(65)],
    ["dotted", `${"a".repeat(22)}.b`],
    ["a wildcard", `${"a".repeat(22)}*`],
    ["a gateway user's nkey", createKeyPair("user").public],
  ])("3. a connection name that is %s", async (_form, name) => {
    const w = world();
    const token = await issuer.bearer(w.who);
    await denied(w, connect(w.ledger, { token, ...(name === undefined ? {} : { name }) }), "bad-request", "nonce");
    expect(w.ledger.reads).toEqual([]);
  });

  test("4. rows that cannot be read", async () => {
    const w = world();
    w.ledger.dead.add("auth");
    await denied(w, w.attempt(), "unavailable", "rows");
  });

  test("4. an unreadable row is corruption, never absence", async () => {
    const w = world();
    w.ledger.garble(keysOf(w.who).gate);
    await denied(w, w.attempt(), "internal", "rows");
  });

  test("5. an actor without row", async () => {
    const w = world();
    w.ledger.remove(keysOf(w.who).row);
    await denied(w, w.attempt(), "permission-denied", "actor");
  });

  test("5. a revoked actor", async () => {
    const w = world();
    w.ledger.put(keysOf(w.who).row, { ...w.who.row, state: "revoked", revokedAt: Date.now() });
    await denied(w, w.attempt(), "permission-denied", "actor");
  });

  test("5. a former incarnation's bearer", async () => {
    const w = world();
    w.ledger.put(keysOf(w.who).row, { ...w.who.row, lifecycleUid: newUid(ports) });
    await denied(w, w.attempt(), "permission-denied", "actor");
  });

  test("5. another parent", async () => {
    const parent = principalOf(alice, Actor.parse("cli"));
    const w = world(grant({ actor: "coder", parent }));
    w.ledger.put(keysOf(w.who).row, { ...w.who.row, parent: principalOf(alice, Actor.parse("other")) });
    await denied(w, w.attempt(), "permission-denied", "actor");
  });

  test("5. a bearer wider than the row", async () => {
    const w = world(grant({ scope: ["run"] }));
    const act = { scope: [Scope.parse("run"), Scope.parse("spawn")] };
    await denied(w, w.attempt({ act }), "permission-denied", "actor");
  });

  test("6. a frozen, a retired, an absent gate", async () => {
    const w = world();
    const { gate } = keysOf(w.who);
    const op = { opId: newUid(ports), kind: "retirement" as const };
    for (const state of ["frozen", "retired"] as const) {
      w.ledger.put(gate, { lifecycleUid: w.who.uid, state, generation: 1, op });
      await denied(w, w.attempt(), "permission-denied", "root");
    }
    w.ledger.remove(gate);
    await denied(w, w.attempt(), "permission-denied", "root");
  });

  test("6. a root that is not the head's", async () => {
    const w = world();
    const other = { ...w.who, credentialId: `root-${newUid(ports)}` as CredentialId };
    w.ledger.put(keysOf(other).root, { ...w.who.root, credentialId: other.credentialId });
    const { credentialId } = other;
    await denied(w, w.attempt({ act: { credentialId } }), "permission-denied", "root");
  });

  test("6. a root that lapsed, was revoked, is absent, is another's, or no root", async () => {
    const w = world();
    const { root } = keysOf(w.who);
    const holder = principalOf(bob, Actor.parse("cli"));
    const changes: Partial<Cred>[] = [
      { exp: Date.now() - 1 },
      { state: "revoked" },
      { holderPrincipal: holder },
      { role: "sessionHolder" },
    ];
    for (const change of changes) {
      w.ledger.put(root, { ...w.who.root, ...change });
      await denied(w, w.attempt(), "permission-denied", "root");
    }
    w.ledger.remove(root);
    await denied(w, w.attempt(), "permission-denied", "root");
  });

  test.each([
    ["admin", "admin"],
    ["channel-writer", "admin"],
    ["purger", "admin"],
    ["deployer", "spawn"],
  ] as const)("7. view %s without scope %s", async (view, _scope) => {
    const w = world();
    await denied(w, w.attempt({ act: { view } }), "permission-denied", "view");
  });

  test("7. a manager whose gate is not open, or absent", async () => {
    const w = world();
    const instanceId = newUid(ports);
    const attempt = () => w.attempt({ act: { view: "manager-caller", managerInstanceId: instanceId } });
    await denied(w, attempt(), "permission-denied", "view");
    putManager(w.ledger, instanceId, 3, "frozen");
    await denied(w, attempt(), "permission-denied", "view");
  });

  test("8. a nonce that another principal or another incarnation holds", async () => {
    const w = world();
    const exp = Date.now() + 60_000;
    const own = { owner: w.who.owner, actor: w.who.actor, lifecycleUid: w.who.uid, exp };
    for (const other of [{ owner: bob }, { actor: Actor.parse("x") }, { lifecycleUid: newUid(ports) }]) {
      w.ledger.put(inboxRows.key({ nonce: w.nonce }), { ...own, ...other });
      await denied(w, w.attempt(), "permission-denied", "inbox");
    }
  });

  test("9. permissions that fill more than 16 KiB", async () => {
    const channels = Array.from({ length: 64 }, (_, i) => `channel-${i}-${"x".repeat(60)}`);
    const w = world(grant({ allowSubscribe: channels }));
    await denied(w, w.attempt(), "resource-exhausted", "permissions");
  });

  test("11. a nonce taken since it was read", async () => {
    const w = world();
    w.ledger.beforeCommit = () => {
      const exp = Date.now() + 60_000;
      const row = { owner: bob, actor: w.who.actor, lifecycleUid: newUid(ports), exp };
      w.ledger.put(inboxRows.key({ nonce: w.nonce }), row);
    };
    await denied(w, w.attempt(), "conflict", "hold");
  });

  test("11. a store that does not take the row", async () => {
    const w = world();
    w.ledger.beforeCommit = () => {
      w.ledger.dead.add("connect");
    };
    await denied(w, w.attempt(), "unavailable", "hold");
  });
});

describe("12. between reading and signing", () => {
  test("a freeze denies", async () => {
    const w = world();
    w.ledger.beforeCommit = () => {
      const op = { opId: newUid(ports), kind: "retirement" as const };
      w.ledger.put(keysOf(w.who).gate, { lifecycleUid: w.who.uid, state: "frozen", generation: 1, op });
    };
    expect(await w.attempt()).toMatchObject({ code: "permission-denied", check: "unmoved", step: 12 });
  });

  test("a revoke denies", async () => {
    const w = world();
    w.ledger.beforeCommit = () => {
      w.ledger.put(keysOf(w.who).row, { ...w.who.row, state: "revoked" });
    };
    expect(await w.attempt()).toMatchObject({ code: "permission-denied", check: "unmoved" });
  });

  test("a touch denies: who touches is about to enumerate", async () => {
    const w = world();
    w.ledger.beforeCommit = () => {
      w.ledger.put(keysOf(w.who).gate, { lifecycleUid: w.who.uid, state: "open", generation: 1 });
    };
    expect(await w.attempt()).toMatchObject({ code: "permission-denied", check: "unmoved" });
  });
});
