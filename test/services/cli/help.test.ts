import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VERSION } from "../../../services/version.ts";
import { mesh } from "./cli.ts";

const MAIN = fileURLToPath(new URL("../../../services/cli/main.mjs", import.meta.url));
/** A process of its own, for what `main.mjs` hands to other modules. */
const whole = (...argv: string[]) => promisify(execFile)(process.execPath, [MAIN, ...argv]);
const HOSTS = ["serve", "gateway", "up"];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "help-"));
});
afterAll(() => rm(folder, { recursive: true }));

/** Every command that does something, with its groups. */
async function commands(...group: string[]): Promise<string[][]> {
  const { out } = await mesh(...group, "--help");
  const [, list = ""] = /\nCommands:\n([\s\S]*?)(?:\n\n|$)/.exec(out) ?? [];
  const names = [...list.matchAll(/^ {2}([a-z][a-z-]*)/gm)]
    .map(([, name = ""]) => name)
    .filter((name) => name !== "help");
  if (names.length === 0) return [group];
  return (await Promise.all(names.map((name) => commands(...group, name)))).flat();
}

describe("help", () => {
  it("has an example of every command", async () => {
    const all = (await commands()).filter(([name = ""]) => !HOSTS.includes(name));
    expect(all.length).toBeGreaterThan(15);
    for (const command of all) {
      const { code, out } = await mesh(...command, "--help");
      expect(code).toBe(0);
      expect(out, command.join(" ")).toMatch(new RegExp(`Examples?[^]*mesh-authority ${command.join(" ")}`));
    }
  });

  it.each(HOSTS)("of %s is the same, however it is asked for", async (name) => {
    const { stdout } = await whole(name, "--help");
    expect(stdout).toContain(`Usage: mesh-authority ${name}`);
    expect(stdout).toMatch(new RegExp(`Examples?:[^]*mesh-authority ${name}`));
    expect((await whole("help", name)).stdout).toBe(stdout);
  });

  it("tells the version", async () => {
    expect(await mesh("--version")).toMatchObject({ code: 0, out: `${VERSION}\n` });
  });
});

describe("a wrong command", () => {
  it.each<[string, string[], string]>([
    ["a misspelt command", ["actor", "lsit"], "Did you mean list"],
    ["a misspelt flag", ["actor", "list", "--knd", "managed"], "Did you mean --kind"],
    ["a word that is none of a few", ["actor", "list", "--kind", "robot"], "interactive, managed"],
    ["a space that is none", ["actor", "list", "--space", "a b"], "--space"],
    ["brokers that are none", ["actor", "list", "--servers", "nats://a b"], "nats://mesh.example:4222"],
    ["no space for a new one", ["init"], "--space"],
    ["a port that is none", ["init", "--space", "a", "--public-port", "70000"], "1 to 65535"],
    ["a server that is none", ["init", "--space", "a", "--server", "http://a"], "nats://mesh.example:4222"],
    ["a public URL without its port", ["init", "--space", "a", "--public-url", "https://a"], "--public-port"],
    ["an owner that is none", ["actor", "list", "--owner", "alice"], "as the exchange and `actor list` show it"],
    ["a log that is not there", ["explain", "r3f", "--log", "/nowhere"], "--log"],
    ["a value that is not there", ["repair-row", "plane", "--revision", "1", "--value", "/nowhere"], "--value"],
  ])("with %s says what to change, as text and as JSON, and makes nothing", async (_, argv, said) => {
    const state = ["--state", join(folder, "state")];
    if (argv[0] === "repair-row") await mesh("init", "--space", "a", ...state);
    const text = await mesh(...argv, ...state);
    expect(text).toMatchObject({ code: 2, out: "", err: expect.stringContaining(said) });
    const json = await mesh(...argv, ...state, "--json");
    expect(json).toMatchObject({ code: 2, out: "" });
    expect(JSON.parse(json.err)).toMatchObject({
      error: { code: "bad-request", message: expect.stringContaining(said) },
    });
  });

  it("about a step of the issuer's keys names the keys or the steps there are", async () => {
    const state = ["--state", join(folder, "state")];
    expect(await mesh("rotate", "issuer", ...state)).toMatchObject({ code: 2, err: expect.stringContaining("--next") });
  });
});
