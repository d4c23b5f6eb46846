/** The custodian as a process runs it: provisioned users, the rail, and people whom the callout admitted. */

import type { NatsConnection } from "@nats-io/nats-core";
import { pino } from "pino";
import { register } from "prom-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startCallout } from "../../../services/callout/start.ts";
import { startCustodian } from "../../../services/custodian/start.ts";
import type { RunningService } from "../../../services/service.ts";
import { AuthorityClient } from "../../../shared/client.ts";
import { custodianDescribe } from "../../../shared/contracts/custodian/describe.ts";
import { evictPrincipals } from "../../../shared/contracts/custodian/evict-principals.ts";
import { principalLiveness } from "../../../shared/contracts/custodian/principal-liveness.ts";
import { encodeJwt, userClaims } from "../../../shared/credentials/jwt.ts";
import { createKeyPair, keyPairFromSeed } from "../../../shared/credentials/nkeys.ts";
import { SelfSigned } from "../../../shared/credentials/self-signed.ts";
import { provisionedUid } from "../../../shared/credentials/users.ts";
import { askConnectionLiveness, askEvict, askPrincipalLiveness } from "../../../shared/custody.ts";
import { CUSTODIAN } from "../../../shared/limits.ts";
import { connectUser, tupleOf, type User } from "../../../shared/nats/connect.ts";
import { OwnedConnections, runCloseSteps } from "../../../shared/nats/owned.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { directoryStore } from "../../../shared/secrets/directory.ts";
import { loadCreds, loadSecret, SECRET, viewKeys } from "../../../shared/secrets/keys.ts";
import { type AccountNkey, Actor, Owner, type Principal, principalOf } from "../../../shared/tokens.ts";
import { ownWork } from "../../../shared/work.ts";
import { freshNonce, grant, install, space } from "../callout/people.ts";
import { startSpace, type TestSpace } from "../callout/space.ts";

const ports = systemPorts;
const local = (actor: string) => ({ owner: Owner.parse("local"), actor: Actor.parse(actor) });
let at: TestSpace;
let custodian: RunningService;
let callout: RunningService;
let auth: AuthorityClient;
/** The tuple of `local.auth` in the authority account. */
let tuple: ReturnType<typeof tupleOf>;
/** Signed for the space account without a tag that names a principal. */
let untagged: NatsConnection;
const owned: OwnedConnections[] = [];
const lines: string[] = [];

beforeAll(async () => {
  at = await startSpace();
  const calloutDeps = await at.deps();
  callout = await startCallout(calloutDeps);
  const connections = new OwnedConnections({ servers: at.broker.url }, ports);
  owned.push(calloutDeps.owned, connections);
  const quick = { ...CUSTODIAN, discoverQuietMs: 50, discoverMinMs: 100, settleBaseMs: 100 };
  const secrets = await directoryStore(at.stateDir, viewKeys(space, "custodian"));
  const log = pino({ level: "info" }, { write: (line) => void lines.push(line) });
  const signal = new AbortController().signal;
  const deps = { space, settings: at.settings, secrets, ports, log, owned: connections, signal, version: "0.1.0" };
  custodian = await startCustodian(deps, quick);

  const keys = await loadSecret(await directoryStore(at.stateDir), space, SECRET.serviceKeys);
  const uid = newUid(ports);
  const own = { space, service: "auth", uid, ports } as const;
  const work = new SelfSigned({
    ...own,
    profile: "work",
    account: keys.dataAccount.pub,
    signer: keyPairFromSeed(keys.dataAccount.signingSeed),
  });
  const store = new SelfSigned({
    ...own,
    profile: "store",
    account: keys.authorityAccount.pub,
    signer: keyPairFromSeed(keys.authorityAccount.signingSeed),
  });
  const open = { name: "auth", reconnect: false };
  untagged = await connectUser({
    servers: at.broker.url,
    name: "untagged",
    reconnect: false,
    user: untaggedUser(keys.dataAccount),
  });
  const connection = await connections.open("work:auth", { ...open, user: () => work.user() });
  const ledger = await connections.open("store:auth", { ...open, user: () => store.user() });
  tuple = tupleOf(ledger, store.user().key.public);
  auth = new AuthorityClient({
    connection,
    space,
    caller: { ...local("auth"), uid },
    inboxPrefix: `_INBOX_${work.user().key.public}`,
    name: "auth",
    ports,
  });
});

/** As somebody signs who does not know how connections are attributed. */
function untaggedUser({ pub, signingSeed }: { pub: AccountNkey; signingSeed: string }): () => User {
  const key = createKeyPair("user");
  const permissions = { pub: { allow: [], deny: [">"] }, sub: { allow: [`_INBOX_${key.public}.>`], deny: [] } };
  const iat = Math.floor(ports.now() / 1_000);
  const claims = userClaims({ subject: key.public, name: "untagged", issuerAccount: pub, permissions, tags: [], iat });
  const jwt = encodeJwt(claims, keyPairFromSeed(signingSeed), ports);
  return () => ({ jwt, key });
}

afterAll(async () => {
  await callout.close();
  for (const connections of owned) await runCloseSteps(connections.closeSteps(""));
  await at.stop();
});

/** Somebody else on the rail, through a connection that may publish as anyone. */
const someone = (caller: { owner: Owner; actor: Actor; uid: ReturnType<typeof newUid> }) =>
  new AuthorityClient({ connection: at.space, space, caller, inboxPrefix: "_INBOX", name: "someone", ports });

const work = () => ownWork(ports, 30_000);
const code = (value: string) => expect.objectContaining({ code: value });

describe("the custodian on the rail", () => {
  it("lets nobody but the authority ask, and anyone read what it serves", async () => {
    const operator = await loadCreds(await directoryStore(at.stateDir), space, "operator");
    const uid = provisionedUid(keyPairFromSeed(operator.seed).public);
    const asking = someone({ ...local("operator"), uid });
    const principals = ["local.auth_serve_x" as Principal];
    for (const client of [asking, someone({ ...local("auth_serve_x"), uid: newUid(ports) })]) {
      await expect(client.call(evictPrincipals, { principals })).rejects.toThrowError(code("permission-denied"));
      await expect(
        client.call(principalLiveness, { principal: principals[0] ?? ("" as Principal) }),
      ).rejects.toThrowError(code("permission-denied"));
    }
    const { descriptor } = await asking.call(custodianDescribe, null);
    expect(descriptor.commands.map(({ name }) => name)).toEqual([
      "connection-liveness",
      "evict-principals",
      "principal-liveness",
    ]);
    expect(descriptor).toMatchObject({ endpoint: "custodian", epoch: 0, registrationRevision: 0 });
  });

  it("refuses duplicates, its asker and itself, before anything is swept", async () => {
    const evict = (...principals: string[]) => auth.call(evictPrincipals, { principals: principals as Principal[] });
    await expect(evict("local.x", "local.x")).rejects.toThrowError(code("bad-request"));
    for (const own of ["local.auth", "local.custodian", "local.custodian_system"]) {
      await expect(evict("local.x", own)).rejects.toThrowError(code("failed-precondition"));
    }
  });

  it("proves nothing while a user without tag is connected, and answers all the same", async () => {
    const principal = "local.auth_serve_x" as Principal;
    const { state, note } = await askPrincipalLiveness(auth, principal, work(), ports);
    expect(state).toBe("unknown");
    expect(note).toContain("it has no principal tag");
    const asking = work();
    const [eviction] = await askEvict(auth, [principal], asking, ports);
    expect(eviction).toMatchObject({ principal, verifiedGone: false, scanComplete: false });
    expect(asking.effects.outcome).toBe("not-executed");
  });

  it("decides the tuples of a claim in the authority account", async () => {
    const gone = { ...tuple, cid: tuple.cid + 1_000 };
    const answer = await askConnectionLiveness(auth, { ledger: tuple, records: gone }, work(), ports);
    expect(answer.ledger).toEqual({ tuple, state: "live" });
    expect(answer.records).toEqual({ tuple: gone, state: "gone" });
    expect(answer.sweepComplete).toBe(true);
  });

  it("evicts whom the callout admitted, found by name, and proves them gone", async () => {
    const who = await install(at, grant({ actor: `cli_${newUid(ports)}` }));
    const principal = principalOf(who.owner, who.actor);
    const client = await at.connect(await at.bearers.bearer(who), freshNonce());
    await untagged.close();
    expect(await askPrincipalLiveness(auth, principal, work(), ports)).toEqual({
      principal,
      state: "live",
      sweepComplete: true,
    });
    const asking = work();
    const absent = "local.auth_serve_x" as Principal;
    expect(await askEvict(auth, [absent, principal], asking, ports)).toEqual([
      { principal: absent, kicked: 0, remaining: 0, verifiedGone: true, scanComplete: true },
      { principal, kicked: 1, remaining: 0, verifiedGone: true, scanComplete: true },
    ]);
    asking.effects.complete();
    expect(asking.effects.outcome).toBe("executed");
    await client.closed();
    expect((await askPrincipalLiveness(auth, principal, work(), ports)).state).toBe("gone");
  });

  it("logs each request once and each sweep, and tells the age of its system credential", async () => {
    const logged = lines.map((line): Record<string, unknown> => JSON.parse(line));
    const evictions = logged.filter(({ msg, op }) => msg === "request" && op === "evict-principals");
    expect(evictions.at(-1)).toMatchObject({ code: "ok", targets: 2, kicked: 1, verifiedGone: 2 });
    expect(logged.some(({ msg, note }) => msg === "incomplete sweep" && typeof note === "string")).toBe(true);
    const age = "custodian_credential_age_seconds";
    expect(logged.filter((fields) => age in fields)).toHaveLength(1);
    expect(await register.getSingleMetricAsString(age)).toMatch(/^custodian_credential_age_seconds \d+$/m);
    expect(lines.join("")).not.toMatch(/eyJ|\bSU[A-Z2-7]{56}/);
  });

  it("drains and closes, and then nobody answers", async () => {
    expect(custodian.ready()).toBe(true);
    await custodian.close();
    expect(custodian.ready()).toBe(false);
    expect(await custodian.ended).toBe("closed");
    const principal = "local.auth_serve_x" as Principal;
    await expect(auth.call(principalLiveness, { principal }, { once: true })).rejects.toThrowError(
      expect.objectContaining({ code: "unavailable", outcome: "not-executed" }),
    );
    const { state, note } = await askPrincipalLiveness(auth, principal, ownWork(ports, 300), ports);
    expect(state).toBe("unknown");
    expect(note).toBe("the custodian answers unavailable: nobody serves this operation");
  });
});
