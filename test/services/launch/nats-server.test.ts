import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findNatsServer, mirrorIn } from "../../../services/launch/nats-server.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "binaries-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A stand-in that only reports a version. */
async function binary(name: string, version: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  await chmod(path, 0o755);
  return path;
}

describe("finding a broker", () => {
  it("takes the one that is named, before all others", async () => {
    const path = await binary("named", "2.15.2");
    const lines: string[] = [];
    const found = await findNatsServer({ env: { NATS_SERVER: path }, log: (line) => lines.push(line) });
    expect(found).toEqual({ path, version: "2.15.2", source: "NATS_SERVER" });
    expect(lines).toEqual([`nats-server 2.15.2 (NATS_SERVER): ${path}`]);
  });

  it("takes one on PATH that is recent enough", async () => {
    const path = await binary("nats-server", "2.12.0");
    expect(await findNatsServer({ env: { PATH: folder } })).toEqual({ path, version: "2.12.0", source: "PATH" });
  });

  it.each(["2.11.9", "1.99.0"])("refuses the named one if it is version %s", async (version) => {
    const path = await binary("old", version);
    await expect(findNatsServer({ env: { NATS_SERVER: path } })).rejects.toThrow("NATS_SERVER names");
  });
});

describe("the Debian mirror of a machine", () => {
  it.each([
    ["Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\n", "http://mirror.example/debian"],
    ["deb https://mirror.example/debian/ trixie main\n", "https://mirror.example/debian"],
    ["deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian trixie main\n", "http://mirror.example/debian"],
    ["URIs: http://security.example/debian-security http://mirror.example/debian\n", "http://mirror.example/debian"],
    ["# deb http://mirror.example/debian trixie main\n", undefined],
    ["deb https://packages.example/cloud-sdk main\n", undefined],
  ])("is read from %j", (sources, mirror) => {
    expect(mirrorIn(sources)).toBe(mirror);
  });
});
