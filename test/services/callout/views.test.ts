import { describe, expect, test } from "vitest";
import { Issuances } from "../../../services/callout/issuances.ts";
import type { BearerAct } from "../../../shared/bearer.ts";
import { compilePermissions } from "../../../shared/credentials/compile.ts";
import type { Permissions } from "../../../shared/credentials/jwt.ts";
import type { Holder } from "../../../shared/credentials/profiles/profile.ts";
import { acceptedToken, ceilingOf } from "../../../shared/issued.ts";
import { CALLOUT } from "../../../shared/limits.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { acceptedRows } from "../../../shared/rows/accepted.ts";
import { type Cred, credRows } from "../../../shared/rows/credential.ts";
import { issuedRows } from "../../../shared/rows/issued.ts";
import { type Session, sessionRows } from "../../../shared/rows/session.ts";
import {
  type CredentialId,
  EndpointLabel,
  Generation,
  Hex64,
  type Nonce,
  Principal,
  principalOf,
  SessionId,
  Uid,
} from "../../../shared/tokens.ts";
import { admitted, denied, manager, permissionsIn, putManager, world } from "./connecting.ts";
import { bob, freshNonce, grant, type Identity, keysOf, space } from "./people.ts";

const ports = systemPorts;

describe("each view gets exactly its profile", () => {
  const hex = Hex64.parse("c".repeat(64));
  const instanceId = newUid(ports);
  const who = grant({ scope: ["admin", "spawn"], allowPublish: ["out"], allowSubscribe: ["in"] });
  const { owner, actor, uid } = who;
  const lists = { allowPublish: who.row.allowPublish, allowSubscribe: who.row.allowSubscribe };
  type Of = (holder: Holder) => Permissions;
  const views: [string, Partial<BearerAct>, Of][] = [
    ["none", {}, (holder) => compilePermissions("agent", { ...holder, ...lists, spawn: true })],
    ["admin", { view: "admin" }, (holder) => compilePermissions("admin", holder)],
    ["channel-writer", { view: "channel-writer" }, (holder) => compilePermissions("channel-writer", holder)],
    ["channel-purger", { view: "channel-purger" }, (holder) => compilePermissions("channel-purger", holder)],
    ["purger", { view: "purger" }, (holder) => compilePermissions("purger", holder)],
    ["deployer", { view: "deployer" }, (holder) => compilePermissions("deployer", holder)],
    [
      "transfer-writer",
      { view: "transfer-writer", transferWriter: { instanceId, hex } },
      (holder) => compilePermissions("transfer-writer", { ...holder, instanceId, hex }),
    ],
  ];
  test.each(views)("%s", async (_view, act, expected) => {
    const w = world(who);
    const { pub, sub } = permissionsIn(admitted(await w.attempt({ act, ttlS: 60 })));
    const permissions = expected({ space, owner, actor, uid, inbox: w.nonce });
    expect({ pub, sub }).toEqual({ pub: permissions.pub, sub: permissions.sub });
  });
});

describe("a session", () => {
  const sessionId = SessionId.parse("s".repeat(22));

  function withSession(change: { session?: Partial<Session>; holder?: Partial<Cred>; epoch?: number } = {}) {
    const w = world();
    const instanceId = newUid(ports);
    const exp = Date.now() + 60_000;
    const credentialId = `h-${sessionId}` as CredentialId;
    const principal = principalOf(w.who.owner, w.who.actor);
    w.ledger.put(sessionRows.key({ sessionId }), {
      sessionId,
      endpoint: manager,
      serving: { instanceId, epoch: 3 },
      holder: { principal, lifecycleUid: w.who.uid },
      holderCredentialId: credentialId,
      servingCredentialId: `sha256-${"0".repeat(64)}` as CredentialId,
      grantSig: "sig",
      state: "active",
      exp,
      ...change.session,
    });
    w.ledger.put(credRows.key({ uid: w.who.uid, credentialId }), {
      credentialId,
      role: "sessionHolder",
      holderPrincipal: principal,
      lifecycleUid: w.who.uid,
      sourceChain: [`session.${sessionId}`],
      generation: 1,
      state: "active",
      exp,
      ...change.holder,
    });
    putManager(w.ledger, instanceId, change.epoch ?? 3);
    const session = { endpoint: manager, sessionId, epoch: 3, exp: Math.floor(exp / 1_000) };
    return { w, attempt: () => w.attempt({ act: { view: "session-caller", session } }) };
  }

  test("admits its holder to its subjects alone", async () => {
    const { attempt } = withSession();
    const { pub } = permissionsIn(admitted(await attempt()));
    expect(pub.allow).toContain(`cotal.demo.eps.manager.${sessionId}.3.in`);
    expect(pub.allow.some((subject) => subject.includes(".chat."))).toBe(false);
  });

  test.each([
    ["that has ended", { session: { state: "closed" as const } }],
    ["that has expired", { session: { exp: Date.now() - 1 } }],
    ["of another endpoint", { session: { endpoint: EndpointLabel.parse("delivery") } }],
    ["whose holder's half was revoked", { holder: { state: "revoked" as const } }],
    ["whose server has restarted", { epoch: 4 }],
    [
      "of another holder",
      { session: { holder: { principal: Principal.parse(`${bob}.cli`), lifecycleUid: Uid.parse("0".repeat(26)) } } },
    ],
  ])("%s is denied", async (_what, change) => {
    const { w, attempt } = withSession(change);
    await denied(w, attempt(), "permission-denied", "view");
  });
});

describe("an issued connection", () => {
  function issuing(who?: Identity) {
    const w = world(who);
    const instanceId = newUid(ports);
    putManager(w.ledger, instanceId, 3);
    const token = acceptedRows.key({ token: acceptedToken(w.nonce) });
    return { w, token, attempt: () => w.attempt({ act: { view: "manager-caller", managerInstanceId: instanceId } }) };
  }

  test("of a person: evidence, then the accepted row, then the inbox; rows on v1 under the generation", async () => {
    const { w, token, attempt } = issuing();
    const { pub, sub } = permissionsIn(admitted(await attempt()));
    const ref = w.ledger.peek(token)?.ref;
    if (!ref) throw new Error("nothing accepted");
    const { owner, actor, uid, generation } = ref;
    expect({ owner, actor, uid }).toEqual({ owner: w.who.owner, actor: w.who.actor, uid: w.who.uid });
    expect(w.ledger.written).toEqual([`v1.${owner}.${actor}.${uid}.${generation}`, token.key, `inbox.${w.nonce}`]);
    const asks = pub.allow.filter((subject) => subject.startsWith("cotal.demo.ep."));
    expect(asks.length).toBeGreaterThan(0);
    expect(asks.every((subject) => subject.startsWith("cotal.demo.ep.v1.") && subject.includes(generation))).toBe(true);
    const evidence = w.ledger.peek(issuedRows.key({ owner, actor, uid, generation }));
    expect(evidence).toMatchObject({
      permissions: ceilingOf({ pub, sub }),
      sources: [
        { space, bucket: "cotal_actors_demo", key: `actor.${owner}.${actor}.${uid}` },
        { space, bucket: "cotal_auth_demo", key: `cred.${uid}` },
      ],
    });
  });

  test("renews under the same nonce with the same permissions: the same generation, one row written", async () => {
    const { w, attempt } = issuing();
    admitted(await attempt());
    w.ledger.written.length = 0;
    admitted(await attempt());
    expect(w.ledger.written).toEqual([`inbox.${w.nonce}`]);
  });

  test("is refused under the same nonce with other permissions", async () => {
    const { w, attempt } = issuing();
    admitted(await attempt());
    w.ledger.written.length = 0;
    const other = newUid(ports);
    putManager(w.ledger, other, 1);
    const outcome = w.attempt({ act: { view: "manager-caller", managerInstanceId: other } });
    await denied(w, outcome, "failed-precondition", "issued");
  });

  test("is refused under one fresh nonce too many, and goes on under the one it has", async () => {
    const { w } = issuing();
    const instanceId = newUid(ports);
    putManager(w.ledger, instanceId, 3);
    const issuances = new Issuances({ monotonic: () => 0 });
    const attempt = (nonce: Nonce) =>
      w.attempt({ act: { view: "manager-caller", managerInstanceId: instanceId }, name: nonce, issuances });
    for (let made = 0; made < CALLOUT.issuedBurst; made += 1)
      admitted(await attempt(made === 0 ? w.nonce : freshNonce()));
    w.ledger.written.length = 0;
    await denied(w, attempt(freshNonce()), "resource-exhausted", "issued");
    admitted(await attempt(w.nonce));
  });

  test("is refused under a nonce accepted for somebody else, whose inbox row has lapsed", async () => {
    const { w, token, attempt } = issuing();
    const generation = Generation.parse("0".repeat(32));
    const ref = { space, owner: bob, actor: w.who.actor, uid: newUid(ports), generation };
    w.ledger.put(token, { version: 1, ref });
    await denied(w, attempt(), "failed-precondition", "issued");
  });

  test("of an agent needs scope run, its own and its direct parent's", async () => {
    const parent = grant({ scope: ["run"] });
    const parentName = principalOf(parent.owner, parent.actor);
    const agent = (scope: string[]) => grant({ actor: "coder", parent: parentName, scope });
    const issued = async (who: Identity, parentRow: Identity["row"] | undefined) => {
      const { w, token, attempt } = issuing(who);
      if (parentRow) w.ledger.put(keysOf(parent).row, parentRow);
      admitted(await attempt());
      return w.ledger.peek(token) !== undefined;
    };
    expect(await issued(agent(["run"]), parent.row)).toBe(true);
    expect(await issued(agent([]), parent.row)).toBe(false);
    expect(await issued(agent(["run"]), { ...parent.row, scope: [] })).toBe(false);
    expect(await issued(agent(["run"]), { ...parent.row, state: "revoked" })).toBe(false);
    expect(await issued(agent(["run"]), undefined)).toBe(false);
  });
});
