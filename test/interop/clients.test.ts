/** The clients that README shows, run as they stand there, against a real space: in TypeScript, Go and Python. */
import { copyFile, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OpenFace, openFaces } from "../../gateway/start.ts";
import { OwnedConnections, runCloseSteps } from "../../shared/nats/owned.ts";
import { systemPorts } from "../../shared/ports.ts";
import { ROOT, runnable } from "../docs/code-blocks.ts";
import { freePorts } from "../kit/broker.ts";
import { login } from "../kit/logins.ts";
import { startSpace, type TestSpace } from "../kit/space.ts";
import { findTool, lastLine, type Ran, run } from "./run.ts";

/** Fetching over a network, once; what has been fetched is kept. */
const FETCH_MS = 90_000;
const BUILD_MS = 90_000;
const TEST_MS = FETCH_MS + BUILD_MS + 30_000;
const NATS_PY = ["nats-py==2.16.0", "nkeys==0.2.1"];
const CACHE = `${ROOT}.cache/interop/`;

let space: TestSpace;
let owned: OwnedConnections;
let faces: OpenFace[] = [];
let publicUrl: string;
let owner: string;
const folders: string[] = [];

async function folderIn(parent: string): Promise<string> {
  await mkdir(parent, { recursive: true });
  const made = await mkdtemp(join(parent, "interop-"));
  folders.push(made);
  return made;
}

beforeAll(async () => {
  const [publicPort = 0] = await freePorts(1);
  publicUrl = `http://127.0.0.1:${publicPort}`;
  space = await startSpace({ services: ["auth", "callout"] });
  const settings = {
    ...space.settings,
    broker: { ...space.settings.broker, advertised: space.broker.url },
    gateway: { ...space.settings.gateway, publicPort, publicUrl },
  };
  await space.host(["exchange"], () => ({ settings }));
  owned = new OwnedConnections({ servers: space.servers }, systemPorts);
  faces = await openFaces({
    space: space.space,
    port: 0,
    publicFace: { port: publicPort, url: publicUrl, trustedProxy: false },
    secrets: space.secrets,
    owned,
    ports: systemPorts,
    log: pino({ level: "silent" }),
  });
  ({ owner } = await space.person("alice", { allowSubscribe: ["general"], allowPublish: ["general"] }));
});

afterAll(async () => {
  await Promise.all(faces.map((face) => face.close()));
  await runCloseSteps(owned.closeSteps("gateway:"));
  await space.stop();
  await Promise.all(folders.map((path) => rm(path, { recursive: true, force: true })));
});

const environment = (idToken = login("alice")) => ({ MESH_URL: publicUrl, ID_TOKEN: idToken });

/** It published where it may, heard that, and was refused where it may not. */
function expectToHaveTalked({ code, stdout, stderr }: Ran): void {
  expect(stderr).toBe("");
  const [received, refused] = stdout.trim().split("\n");
  expect(received).toBe(`received hello on cotal.demo.chat.${owner}.cli.general`);
  expect(refused).toMatch(/^refused: .*[Pp]ermissions [Vv]iolation.*\.cli\.secret"?/);
  expect(code).toBe(0);
}

async function expectRefusal(client: (idToken: string) => Promise<Ran>): Promise<void> {
  const { code, stdout, stderr } = await client("no.proof.at-all");
  expect(code).not.toBe(0);
  expect(stdout).toBe("");
  expect(stderr).toMatch(/unauthenticated|401/);
}

describe("the client in TypeScript", () => {
  let client: (idToken?: string) => Promise<Ran>;

  beforeAll(async () => {
    // Beside the packages: a module is resolved from where it lies.
    const path = await folderIn(CACHE);
    await writeFile(join(path, "connect.ts"), await runnable("README.md", "connect.ts"));
    client = (idToken) =>
      run(process.execPath, ["--import", "tsx", join(path, "connect.ts")], {
        ms: 20_000,
        cwd: ROOT,
        env: environment(idToken),
      });
  });

  it("talks where it may and is refused elsewhere", async () => expectToHaveTalked(await client()));
  it("says why a login is refused", () => expectRefusal(client));
});

describe("the client in Go", () => {
  it(
    "talks where it may and is refused elsewhere, and says why a login is refused",
    async (ctx) => {
      const go = await findTool("go", "/usr/local/go/bin");
      if (go === undefined) return ctx.skip("Go is not installed");
      const cwd = await folderIn(tmpdir());
      for (const file of ["go.mod", "go.sum"]) await copyFile(`${ROOT}test/interop/go/${file}`, join(cwd, file));
      await writeFile(join(cwd, "main.go"), await runnable("README.md", "main.go"));
      const env = { GOFLAGS: "-mod=mod", GOTOOLCHAIN: "local" };
      const fetched = await run(go, ["mod", "download"], { ms: FETCH_MS, cwd, env });
      if (fetched.code !== 0) return ctx.skip(`nats.go could not be had: ${lastLine(fetched)}`);

      // On one core, since other tests run beside it: the first build on a machine compiles Go's own library, too.
      const built = await run(go, ["build", "-p", "1", "-o", "client", "."], { ms: BUILD_MS, cwd, env });
      if (built.code === null) return ctx.skip(`the client was not built within ${BUILD_MS / 1_000} s`);
      expect(built.stderr).toBe("");
      const client = (idToken?: string) => run(join(cwd, "client"), [], { ms: 20_000, env: environment(idToken) });
      expectToHaveTalked(await client());
      await expectRefusal(client);
    },
    TEST_MS,
  );
});

describe("the client in Python", () => {
  it(
    "talks where it may and is refused elsewhere, and says why a login is refused",
    async (ctx) => {
      const python = await findTool("python3");
      if (python === undefined) return ctx.skip("Python is not installed");
      const packages = await pythonPackages(python);
      if ("missing" in packages) return ctx.skip(`nats-py could not be had: ${packages.missing}`);

      const path = join(await folderIn(tmpdir()), "connect.py");
      await writeFile(path, await runnable("README.md", "connect.py"));
      const client = (idToken?: string) =>
        run(python, [path], { ms: 20_000, env: { ...environment(idToken), PYTHONPATH: packages.path } });
      expectToHaveTalked(await client());
      await expectRefusal(client);
    },
    TEST_MS,
  );
});

/** The packages of the Python client, installed once into the project's cache. */
async function pythonPackages(python: string): Promise<{ path: string } | { missing: string }> {
  const version = await run(python, ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"], { ms: 10_000 });
  const path = `${CACHE}python${version.stdout.trim()}-${NATS_PY.join("-")}`;
  const usable = await run(python, ["-c", "import nats, nkeys"], { ms: 10_000, env: { PYTHONPATH: path } });
  if (usable.code === 0) return { path };
  const made = await folderIn(CACHE);
  const flags = ["--quiet", "--disable-pip-version-check", "--no-input", "--target", made];
  const installed = await run(python, ["-m", "pip", "install", ...flags, ...NATS_PY], { ms: FETCH_MS });
  if (installed.code !== 0) return { missing: lastLine(installed) };
  await rm(path, { recursive: true, force: true });
  await rename(made, path);
  return { path };
}
