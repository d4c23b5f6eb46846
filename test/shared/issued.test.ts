import { describe, expect, test } from "vitest";
import { acceptedToken, ceilingOf, confirm, issue, permits, renew, resolveIssued } from "../../shared/issued.ts";
import { systemPorts } from "../../shared/ports.ts";
import { acceptedRows } from "../../shared/rows/accepted.ts";
import { type Ceiling, issuedRows, type Ref } from "../../shared/rows/issued.ts";
import { Actor, Generation, Nonce, Space } from "../../shared/tokens.ts";
import { ownWork } from "../../shared/work.ts";
import { testPorts } from "../kit/clock.ts";
import { Ledger } from "../services/callout/ledger.ts";
import { bob, freshNonce, grant, install, keysOf, space } from "../services/callout/people.ts";

const permissions = ceilingOf({
  pub: { allow: ["cotal.demo.ep.v1.one.manager.run-start.*.x", "a.>"], deny: ["a.secret.>"] },
  sub: { allow: ["_INBOX_n.>"], deny: [] },
});
const work = () => ownWork(systemPorts, 5_000);

async function issued(ceiling: Ceiling = permissions) {
  const ports = testPorts(Date.now());
  const ledger = new Ledger();
  const who = await install(ledger, grant());
  const { owner, actor, uid } = who;
  const ref: Ref = { space, owner, actor, uid, generation: Generation.parse("1f".repeat(16)) };
  const nonce = freshNonce();
  await issue(ledger, { ref, nonce, permissions: ceiling }, ports, work());
  const accepted = acceptedRows.key({ token: acceptedToken(nonce) });
  const evidence = issuedRows.key(ref);
  const resolve = (of: Ref = ref) => resolveIssued(ledger, of, ports, work());
  return { ports, ledger, who, ref, nonce, accepted, evidence, caller: { owner, actor, uid }, resolve };
}

test("the token is the first half of a hash of the nonce", () => {
  expect(acceptedToken(Nonce.parse("mJ0hQz81mJ0hQz81mJ0hQz"))).toBe("76a9932a5de00d9423e99874637976df");
});

test("issuing writes the evidence, then what the connection finds it by", async () => {
  const { ledger, accepted, evidence, ref, ports } = await issued();
  expect(ledger.written).toEqual([evidence.key, accepted.key]);
  expect(ledger.peek(accepted)).toEqual({ version: 1, ref });
  expect(ledger.peek(evidence)).toMatchObject({ ref, permissions, expiresAt: ports.now() + 86_400_000 });
});

test("both rows live 60 s longer than the ceiling", async () => {
  const { ledger, accepted, evidence, ports } = await issued();
  const [row, found] = [ledger.peek(evidence), ledger.peek(accepted)];
  if (!row || !found) throw new Error("not issued");
  expect(issuedRows.lifetime(row, ports.now())).toBe(86_460);
  expect(acceptedRows.lifetime(found, ports.now())).toBe(86_460);
});

test("a nonce accepted meanwhile is conflict", async () => {
  const { ledger, nonce, ref, ports } = await issued();
  const again = { ...ref, generation: Generation.parse("2e".repeat(16)) };
  await expect(issue(ledger, { ref: again, nonce, permissions }, ports, work())).rejects.toMatchObject({
    code: "conflict",
  });
});

describe("resolving", () => {
  test("gives the ceiling and the evidence's revision, and writes nothing", async () => {
    const { ledger, evidence, resolve } = await issued();
    const revision = (await ledger.read(evidence))?.revision;
    ledger.written.length = 0;
    expect(await resolve()).toEqual({ permissions, resolvedRevision: revision });
    expect(ledger.written).toEqual([]);
  });

  type Issued = Awaited<ReturnType<typeof issued>>;
  const endings: [string, (at: Issued) => void][] = [
    ["evidence is absent", ({ ledger, evidence }) => ledger.remove(evidence)],
    ["it has expired", ({ ports }) => ports.step(86_400_000)],
    ["the actor was revoked", ({ ledger, who }) => ledger.put(keysOf(who).row, { ...who.row, state: "revoked" })],
    ["the actor is absent", ({ ledger, who }) => ledger.remove(keysOf(who).row)],
    [
      "the actor is another incarnation",
      ({ ledger, who }) => ledger.put(keysOf(who).row, { ...who.row, lifecycleUid: grant().uid }),
    ],
    ["the gate is absent", ({ ledger, who }) => ledger.remove(keysOf(who).gate)],
    [
      "the gate is retired",
      ({ ledger, who }) => {
        const op = { opId: grant().uid, kind: "retirement" as const };
        ledger.put(keysOf(who).gate, { lifecycleUid: who.uid, state: "retired", generation: 1, op });
      },
    ],
    ["a row is unreadable", ({ ledger, who }) => ledger.garble(keysOf(who).gate)],
    ["the store cannot be read", ({ ledger }) => void ledger.dead.add("auth")],
    [
      "a source is unknown",
      ({ ledger, evidence }) => {
        const row = ledger.peek(evidence);
        if (row) ledger.put(evidence, { ...row, sources: row.sources.slice(1) });
      },
    ],
    [
      "the evidence is of another space",
      ({ ledger, evidence }) => {
        const row = ledger.peek(evidence);
        if (row) ledger.put(evidence, { ...row, ref: { ...row.ref, space: Space.parse("other") } });
      },
    ],
  ];
  test.each(endings)("is permission-denied where %s", async (_what, end) => {
    const at = await issued();
    end(at);
    await expect(at.resolve()).rejects.toMatchObject({ code: "permission-denied" });
  });

  test("goes on while the gate is merely frozen", async () => {
    const { ledger, who, resolve } = await issued();
    const op = { opId: grant().uid, kind: "retirement" as const };
    ledger.put(keysOf(who).gate, { lifecycleUid: who.uid, state: "frozen", generation: 1, op });
    expect(await resolve()).toMatchObject({ permissions });
  });

  test("of another generation is permission-denied", async () => {
    const { ref, resolve } = await issued();
    const other = { ...ref, generation: Generation.parse("0".repeat(32)) };
    await expect(resolve(other)).rejects.toMatchObject({ code: "permission-denied" });
  });
});

describe("renewing", () => {
  async function renewing(change: { permissions?: Ceiling; actor?: Actor } = {}) {
    const at = await issued();
    const accepted = at.ledger.peek(at.accepted);
    if (!accepted) throw new Error("not issued");
    at.ledger.written.length = 0;
    const caller = { ...at.caller, ...(change.actor ? { actor: change.actor } : {}) };
    const wanted = { accepted, caller, permissions: change.permissions ?? permissions };
    return { ...at, again: () => renew(at.ledger, wanted, at.ports, work()) };
  }

  test("with the same ceiling writes nothing", async () => {
    const { ledger, again } = await renewing();
    await again();
    expect(ledger.written).toEqual([]);
  });

  test("with another ceiling, by another principal or after a source ended is failed-precondition", async () => {
    const wider = { ...permissions, subscribe: { allow: { mode: "all" as const }, deny: [] } };
    const failed = { code: "failed-precondition" };
    await expect((await renewing({ permissions: wider })).again()).rejects.toMatchObject(failed);
    await expect((await renewing({ actor: Actor.parse("x") })).again()).rejects.toMatchObject(failed);
    const ended = await renewing();
    ended.ports.step(86_400_000);
    await expect(ended.again()).rejects.toMatchObject(failed);
  });

  test("over an unreadable store is unavailable: the nonce is still good", async () => {
    const { ledger, again } = await renewing();
    ledger.dead.add("issued");
    await expect(again()).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("a client", () => {
  test("takes the generation of its accepted row", async () => {
    const { ledger, accepted, caller, ref } = await issued();
    const row = ledger.peek(accepted);
    if (!row) throw new Error("not issued");
    expect(confirm(row, caller)).toEqual(ref);
    expect(confirm(row, caller, ref.generation)).toEqual(ref);
    expect(() => confirm(row, { ...caller, owner: bob })).toThrowError(
      expect.objectContaining({ code: "permission-denied" }),
    );
    expect(() => confirm(row, caller, Generation.parse("0".repeat(32)))).toThrowError(
      expect.objectContaining({ code: "failed-precondition" }),
    );
  });
});

describe("a ceiling", () => {
  test("is the same bytes for the same permissions, whatever their order", () => {
    const rules = (allow: string[]) => ({ pub: { allow, deny: [] }, sub: { allow: [], deny: [">"] } });
    expect(ceilingOf(rules(["b", "a", "b"]))).toEqual(ceilingOf(rules(["a", "b"])));
    expect(ceilingOf(rules([])).publish.allow).toEqual({ mode: "none" });
  });

  test("permits what a pattern allows and none denies", () => {
    const { publish } = permissions;
    expect(permits(publish, "cotal.demo.ep.v1.one.manager.run-start.n.x")).toBe(true);
    expect(permits(publish, "a.b.c")).toBe(true);
    expect(permits(publish, "a.secret.c")).toBe(false);
    expect(permits(publish, "b")).toBe(false);
    expect(permits({ allow: { mode: "all" }, deny: ["b"] }, "b")).toBe(false);
    expect(permits({ allow: { mode: "all" }, deny: [] }, "b")).toBe(true);
    expect(permits({ allow: { mode: "none" }, deny: [] }, "b")).toBe(false);
  });
});
