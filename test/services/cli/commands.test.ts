import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Finding } from "../../../services/cli/checks/finding.ts";
import { newUid, systemPorts } from "../../../shared/ports.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import { Actor, PersonOwner } from "../../../shared/tokens.ts";
import { startSpace, type TestSpace } from "../../kit/space.ts";
import { mesh, meshJson } from "./cli.ts";

const OWNER = PersonOwner.parse("u_abcdefghijklmnopqrstuvwxy2");
const LISTS = ["--scope", "run,spawn", "--subscribe", "general,team.>", "--publish", ""];

let space: TestSpace;
let elsewhere: string;
beforeAll(async () => {
  space = await startSpace({ services: ["custodian", "auth"] });
  elsewhere = await mkdtemp(join(tmpdir(), "cli-"));
});
afterAll(async () => {
  await space.stop();
  await rm(elsewhere, { recursive: true });
});

describe("the operator's command line", () => {
  it("grants, lists and says why a wider grant is refused", async () => {
    const granted = await meshJson(space, "actor", "grant", OWNER, "cli", ...LISTS, "--label", "at the terminal");
    expect(granted).toMatchObject({ code: 0, answer: { owner: OWNER, actor: "cli" } });
    const again = await meshJson(space, "actor", "grant", OWNER, "cli", ...LISTS, "--label", "at the terminal");
    expect(again.answer).toMatchObject({ lifecycleUid: (granted.answer as { lifecycleUid: string }).lifecycleUid });

    const listed = await meshJson(space, "actor", "list", "--owner", OWNER);
    expect(listed.answer).toMatchObject([
      { scope: ["run", "spawn"], allowSubscribe: ["general", "team.>"], allowPublish: [] },
    ]);

    const place = ["--state", space.stateDir, "--servers", space.servers.join(",")];
    const wider = await mesh(
      "actor",
      "grant",
      OWNER,
      "cli",
      "--scope",
      "admin",
      "--subscribe",
      "",
      "--publish",
      "",
      ...place,
    );
    expect(wider.code).toBe(1);
    expect(wider.err).toContain("failed-precondition: ");
    expect(wider.err).toContain("`actor grant --replace` do both");
  });

  it("asks for all three lists, since an omission must not mean wide", async () => {
    const { code, err } = await mesh("actor", "grant", OWNER, "cli", "--scope", "run", "--publish", "");
    expect(code).toBe(2);
    expect(err).toContain("--subscribe");
  });

  it.each([
    ["an owner that is none", ["actor", "list", "--owner", "alice"]],
    ["a scope that is none", ["actor", "grant", OWNER, "cli", "--scope", "root", "--subscribe", "", "--publish", ""]],
    [
      "a time that is none",
      ["supervisor-assign", OWNER, "i".repeat(26), "--lifecycle", "l".repeat(26), "--expires", "soon"],
    ],
    ["a user that is none", ["rotate", "creds", "nobody"]],
    ["an unknown command", ["conquer"]],
  ])("takes %s for a wrong command", async (_, argv) => {
    expect((await mesh(...argv)).code).toBe(2);
  });

  it("names the remedy where there is no state, and no broker", async () => {
    const stateless = await mesh("actor", "list", "--state", join(elsewhere, "nothing"));
    expect(stateless).toMatchObject({ code: 1 });
    expect(stateless.err).toContain("make a space with `init`");
    const brokerless = await mesh("actor", "list", "--state", space.stateDir, "--servers", "nats://127.0.0.1:1");
    expect(brokerless).toMatchObject({ code: 75 });
    expect(brokerless.err).toContain("see that the broker and the services run");
  });

  it("makes a space, and keeps it at the second call", async () => {
    const state = ["--state", join(elsewhere, "made"), "--space", "acme", "--json"];
    const idp = ["--idp", "https://login.acme.example,mesh,https://login.acme.example/jwks"];
    const made = await mesh("init", ...idp, "--loopback-port", "5280", ...state);
    expect(JSON.parse(made.out)).toMatchObject({ created: true, settings: { gateway: { loopbackPort: 5_280 } } });
    const kept = await mesh("init", "--loopback-port", "6280", ...state);
    expect(JSON.parse(kept.out)).toMatchObject({ created: false, settings: { gateway: { loopbackPort: 5_280 } } });
    expect((await mesh("init", ...state.slice(0, 2))).err).toContain("--space");
  });

  it("says of a space that is not the only one that it has to be named", async () => {
    const state = ["--state", join(elsewhere, "several")];
    expect((await mesh("init", "--space", "dev", ...state)).out).not.toContain("each with --space");
    expect((await mesh("init", "--space", "acme", ...state)).out).toContain("each with --space acme");
    expect((await mesh("actor", "list", ...state)).err).toContain("name one with --space: acme, dev");
  });

  it("rotates a user's creds, and one step of the issuer at a time", async () => {
    const state = ["--state", join(elsewhere, "made"), "--json"];
    const rotated = JSON.parse((await mesh("rotate", "creds", "operator", ...state)).out);
    expect(rotated.revoked).toHaveLength(1);
    const two = await mesh("rotate", "issuer", "--next", "--activate", ...state);
    expect(JSON.parse(two.err)).toMatchObject({ error: { code: "bad-request" } });
  });

  it("finds out what is wrong, and says what to change", async () => {
    const file = join(
      space.stateDir,
      "auth",
      `space.${Buffer.from(space.space).toString("hex")}`,
      "platform_host.creds",
    );
    await chmod(file, 0o644);
    const { code, answer } = await meshJson(space, "doctor");
    await chmod(file, 0o600);
    expect(code).toBe(1);
    const wrong = (answer as Finding[]).filter(({ ok }) => !ok);
    expect(wrong.find(({ check }) => check === "file")).toMatchObject({ do: expect.stringContaining("chmod go-rwx") });
    for (const name of ["exchange", "callout"]) {
      const remedy = `start it: mesh-authority serve --space ${space.space} --services ${name}`;
      expect(wrong).toContainEqual(expect.objectContaining({ check: `service ${name}`, do: remedy }));
    }
  });

  it("explains a reference from a log, or says where it looked", async () => {
    const log = join(elsewhere, "callout.log");
    const line = { ref: "r3f", decision: "denied", code: "expired", step: 2, check: "proof", ms: 3, msg: "connect" };
    await writeFile(log, `${JSON.stringify(line)}\n`);
    const found = await mesh("explain", "r3f", "--log", log);
    expect(found).toMatchObject({ code: 0, out: expect.stringMatching(/denied, expired[\s\S]*before it connects/) });
    expect(await mesh("explain", "other", "--log", log)).toMatchObject({ code: 1, err: expect.stringContaining(log) });
  });

  it("repairs no row while an auth serves, and none at another revision", async () => {
    const owner = PersonOwner.parse("u_bbcdefghijklmnopqrstuvwxy2");
    const uid = newUid(systemPorts);
    const row = {
      ...{ ver: 1 as const, owner, actor: Actor.parse("cli"), kind: "interactive" as const, state: "revoked" as const },
      ...{ lifecycleUid: uid, scope: [], allowSubscribe: [], allowPublish: [] },
      ...{ grantedAt: 1, grantedBy: "local.operator", revokedAt: 2, revokedBy: "local.operator" },
    };
    const value = join(elsewhere, "row.json");
    await writeFile(value, JSON.stringify(row));
    const key = `actor.${owner}.cli`;
    const beside = await meshJson(space, "repair-row", key, "--revision", "1", "--value", value);
    expect(beside).toMatchObject({ code: 1, answer: { error: { code: "failed-precondition" } } });

    for (const host of space.hosts) await host.stop();
    expect(await meshJson(space, "repair-row", key, "--revision", "1", "--value", value)).toMatchObject({
      answer: { error: { code: "not-found" } },
    });
    const at = actorRows.key({ owner, actor: Actor.parse("cli") });
    const revision = await space.put(at as never, { garbled: true } as never);
    expect(
      await meshJson(space, "repair-row", key, "--revision", String(revision + 1), "--value", value),
    ).toMatchObject({
      answer: { error: { code: "conflict" } },
    });
    const repaired = await meshJson(space, "repair-row", key, "--revision", String(revision), "--value", value);
    expect(repaired).toMatchObject({ code: 0, answer: { before: Buffer.from('{"garbled":true}').toString("base64") } });
    expect((await space.store.read(at))?.value).toEqual(row);
    const none = await meshJson(space, "repair-row", "conquest", "--revision", "1", "--value", value);
    expect(none).toMatchObject({ code: 1, answer: { error: { code: "bad-request" } } });
  });
});
