import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OidcProvider, startOidcProvider } from "../../kit/idp.ts";
import { mesh } from "./cli.ts";

const ACME = "https://accounts.acme.example";

let provider: OidcProvider;
let parent: string;
let state: string[];
const file = (): Promise<string> => readFile(join(parent, "state", "space.61636d65", "idp.json"), "utf8");
const idp = (...argv: string[]) => mesh("idp", ...argv, ...state);
/** With `--json`: what it answers, parsed. */
async function json(...argv: string[]): Promise<unknown> {
  const { out, err } = await idp(...argv, "--json");
  return JSON.parse(out || err);
}

beforeAll(async () => {
  provider = await startOidcProvider("RS256");
  parent = await mkdtemp(join(tmpdir(), "idp-"));
  state = ["--state", join(parent, "state"), "--space", "acme"];
  expect((await mesh("init", ...state)).out).toContain("`mesh-authority idp add`, since nobody can log in yet");
});
afterAll(async () => {
  await provider.stop();
  await rm(parent, { recursive: true });
});

describe("the identity providers of a space", () => {
  it("are none at first", async () => {
    expect(await idp("list")).toMatchObject({ code: 0, out: expect.stringContaining("nobody can log in") });
    expect(await json("list")).toEqual([]);
  });

  it("are asked for their keys and algorithms where nothing is said of them", async () => {
    const { issuer, jwksUri } = provider.pin;
    const added = await json("add", issuer, "--audience", "mesh");
    expect(added).toMatchObject({ url: issuer, issuer, audience: "mesh", jwksUri });
    expect((added as { algorithms: string[] }).algorithms).toContain("RS256");
    expect(JSON.parse(await file())).toEqual({ ver: 1, pins: [added] });
  });

  it("are taken as they are described, with the default that is safe", async () => {
    expect(await json("add", ACME, "--audience", "mesh", "--jwks", `${ACME}/jwks`)).toEqual({
      ...{ url: ACME, issuer: ACME, audience: "mesh", jwksUri: `${ACME}/jwks` },
    });
    const text = await idp("list");
    expect(text.out).toMatch(new RegExp(`${ACME} +mesh +EdDSA +${ACME}/jwks`));
  });

  it("are re-pointed by nothing but --replace", async () => {
    const before = await file();
    const more = ["--audience", "mesh", "--jwks", `${ACME}/jwks`, "--algorithm", "RS256,ES256"];
    expect(await idp("add", ACME, ...more)).toMatchObject({ code: 1, err: expect.stringContaining("--replace") });
    expect(await file()).toBe(before);
    expect(await json("add", ACME, ...more, "--replace")).toMatchObject({ algorithms: ["RS256", "ES256"] });
    expect(await json("list")).toHaveLength(2);
  });

  it("may be pinned with their keys", async () => {
    const keys = join(parent, "keys.json");
    const { keys: published } = (await (await fetch(provider.pin.jwksUri ?? "")).json()) as { keys: object[] };
    await writeFile(keys, JSON.stringify({ keys: published }));
    const pinned = await json(
      "add",
      "https://offline.example",
      "--audience",
      "m",
      "--keys",
      keys,
      "--algorithm",
      "RS256",
    );
    expect(pinned).toMatchObject({ keys: published, algorithms: ["RS256"] });
  });

  it("go one by one, but for the last", async () => {
    const others = [provider.pin.issuer, "https://offline.example"];
    expect(await idp("remove", "https://nobody.example")).toMatchObject({
      code: 1,
      err: expect.stringContaining("idp list"),
    });
    for (const issuer of others) expect(await idp("remove", issuer)).toMatchObject({ code: 0 });
    const before = await file();
    expect(await idp("remove", ACME)).toMatchObject({ code: 1, err: expect.stringContaining("add another one first") });
    expect(await file()).toBe(before);
  });

  it.each<[string, string[], string]>([
    ["an algorithm that is none of ours", [ACME, "--audience", "m", "--algorithm", "HS256"], "choose from EdDSA"],
    ["no audience", [ACME, "--jwks", `${ACME}/jwks`], "--audience"],
    ["keys and their address", [ACME, "--audience", "m", "--jwks", ACME, "--keys", "x"], "either --jwks or --keys"],
    ["keys that are not there", [ACME, "--audience", "m", "--keys", "/nowhere"], "--keys /nowhere"],
    ["localhost", ["http://localhost:9", "--audience", "m", "--jwks", "http://localhost:9/j"], "on a loopback address"],
    ["a provider that is silent", ["http://127.0.0.1:1", "--audience", "m"], "give --jwks and --algorithm"],
  ])("takes %s for a wrong command, and changes nothing", async (_, argv, said) => {
    const before = await file();
    expect(await idp("add", ...argv)).toMatchObject({ code: 2, err: expect.stringContaining(said) });
    expect(await file()).toBe(before);
  });

  it("takes a provider that calls itself otherwise for a wrong name", async () => {
    const { code, err } = await idp("add", `${provider.pin.issuer}/`, "--audience", "mesh");
    expect(code).toBe(2);
    expect(err).toContain(`calls itself "${provider.pin.issuer}"`);
  });

  it("come with a new space, algorithms and all, or no space is made", async () => {
    const elsewhere = ["--state", join(parent, "other"), "--space", "acme"];
    for (const [text, said] of [
      ["https://a", "issuer,audience,jwks"],
      ["https://a,b,https://c,none", "choose from EdDSA"],
      ["http://a.example,b,https://c", "must be https"],
    ] as const) {
      const { code, err } = await mesh("init", "--idp", text, ...elsewhere);
      expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining(said) });
    }
    await expect(readFile(join(parent, "other", "broker", "root.json"))).rejects.toMatchObject({ code: "ENOENT" });
    expect(await mesh("init", "--idp", `${ACME},mesh,${ACME}/jwks,RS256,ES256`, ...elsewhere)).toMatchObject({
      code: 0,
    });
    const { out } = await mesh("idp", "list", "--json", ...elsewhere);
    expect(JSON.parse(out)).toMatchObject([{ issuer: ACME, algorithms: ["RS256", "ES256"] }]);
  });
});
