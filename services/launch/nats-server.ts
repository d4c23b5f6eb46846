/**
 * Finds a broker binary, or fetches one into the project's cache: a Debian package that apt itself verifies, or a
 * module that Go verifies. Nothing outside `.cache/nats-server/` is written.
 *
 *     const { path, version } = await findNatsServer({ log: (line) => console.error(line) });
 */
import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Streams with message TTL and atomic batches need it (state §1). */
const MINIMUM = [2, 12] as const;
const GO_MODULE = "github.com/nats-io/nats-server/v2@v2.15.2";
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const CACHE = fileURLToPath(new URL("../../.cache/nats-server/", import.meta.url));

export interface NatsServerBinary {
  readonly path: string;
  /** as `2.15.2` */
  readonly version: string;
  /** where it was found, for people */
  readonly source: string;
}

interface Options {
  /** Told which binary is used, and what is being fetched. */
  readonly log?: (line: string) => void;
  readonly env?: NodeJS.ProcessEnv;
  readonly cache?: string;
}

interface Place {
  readonly path: string;
  readonly source: string;
}

/** The first binary of version 2.12 or later; fetched if there is none. Throws an `Error` that says how to get one. */
export async function findNatsServer(options: Options = {}): Promise<NatsServerBinary> {
  const { log = () => {}, env = process.env, cache = CACHE } = options;
  const found = (await firstUsable(knownPlaces(env, cache))) ?? (await firstUsable(await goPlaces(env)));
  if (found) return report(found, log);
  return report(await fetchBinary(env, cache, log), log);
}

async function firstUsable(places: readonly Place[]): Promise<NatsServerBinary | undefined> {
  for (const place of places) {
    const version = await usableVersion(place.path);
    if (version) return { ...place, version };
    if (place.source === "NATS_SERVER") {
      throw new Error(
        `NATS_SERVER names ${place.path}, which is no nats-server of version ${MINIMUM.join(".")} or later`,
      );
    }
  }
  return undefined;
}

function report(found: NatsServerBinary, log: (line: string) => void): NatsServerBinary {
  log(`nats-server ${found.version} (${found.source}): ${found.path}`);
  return found;
}

function knownPlaces(env: NodeJS.ProcessEnv, cache: string): Place[] {
  const named = env.NATS_SERVER ? [{ path: env.NATS_SERVER, source: "NATS_SERVER" }] : [];
  const onPath = (env.PATH ?? "")
    .split(delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => ({ path: join(folder, "nats-server"), source: "PATH" }));
  const home = env.HOME ? [{ path: join(env.HOME, "go", "bin", "nats-server"), source: "go/bin" }] : [];
  return [...named, ...onPath, { path: cachedBinary(cache), source: "project cache" }, ...home];
}

async function goPlaces(env: NodeJS.ProcessEnv): Promise<Place[]> {
  const go = await findGo(env);
  if (!go) return [];
  const { stdout } = await run(go, ["env", "GOPATH"], { env }).catch(() => ({ stdout: "" }));
  const paths = stdout
    .trim()
    .split(delimiter)
    .filter((path) => path !== "");
  return paths.map((path) => ({ path: join(path, "bin", "nats-server"), source: "GOPATH" }));
}

async function findGo(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const folders = [...(env.PATH ?? "").split(delimiter), "/usr/local/go/bin"];
  for (const folder of folders.filter((folder) => folder !== "")) {
    const path = join(folder, "go");
    if (await isExecutable(path)) return path;
  }
  return undefined;
}

const cachedBinary = (cache: string): string => join(cache, "nats-server");

const isExecutable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

/** The version a binary reports, if it is one that the streams can live on. */
async function usableVersion(path: string): Promise<string | undefined> {
  if (!(await isExecutable(path))) return undefined;
  const { stdout } = await run(path, ["--version"], { timeout: 10_000 }).catch(() => ({ stdout: "" }));
  const match = /v?(\d+)\.(\d+)\.(\d+)/.exec(stdout);
  if (!match) return undefined;
  const [major, minor] = [Number(match[1]), Number(match[2])];
  const recent = major > MINIMUM[0] || (major === MINIMUM[0] && minor >= MINIMUM[1]);
  return recent ? `${major}.${minor}.${match[3]}` : undefined;
}

async function fetchBinary(
  env: NodeJS.ProcessEnv,
  cache: string,
  log: (line: string) => void,
): Promise<NatsServerBinary> {
  const failures: string[] = [];
  for (const [source, fetch] of [
    ["Debian package", fetchFromDebian],
    ["Go module", fetchFromGo],
  ] as const) {
    await mkdir(cache, { recursive: true });
    const work = await mkdtemp(join(cache, "fetch-"));
    try {
      const built = await fetch(env, work, log);
      const version = await usableVersion(built);
      if (!version) throw new Error(`what was fetched is no nats-server of version ${MINIMUM.join(".")} or later`);
      await rename(built, cachedBinary(cache));
      return { path: cachedBinary(cache), version, source };
    } catch (error) {
      failures.push(`  ${source}: ${reasonOf(error)}`);
      log(`${source}: ${reasonOf(error)}`);
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }
  throw new Error(
    [
      `no nats-server of version ${MINIMUM.join(".")} or later was found or could be fetched:`,
      ...failures,
      "Install one (a Debian testing or later package, `go install " +
        GO_MODULE +
        "`, or a release of the NATS project)",
      "and put it on PATH, or name it in NATS_SERVER.",
    ].join("\n"),
  );
}

/** What a failed command said last, or the error's own text. */
function reasonOf(error: unknown): string {
  const said = error instanceof Error && "stderr" in error ? String(error.stderr) : "";
  const text = said.trim() || (error instanceof Error ? error.message : String(error));
  return text.trim().split("\n").slice(-2).join(" ").slice(0, 300);
}

/**
 * The package of Debian's testing release, from the mirror this machine already uses. Sources, lists and cache are
 * private to the call, so the machine's own are not touched; apt verifies the release signature and every hash.
 */
async function fetchFromDebian(env: NodeJS.ProcessEnv, work: string, log: (line: string) => void): Promise<string> {
  const mirror = await debianMirror();
  log(`fetching the nats-server package of Debian testing from ${mirror}`);
  const sources = join(work, "sources.list");
  await writeFile(sources, `deb [signed-by=${KEYRING}] ${mirror} testing main\n`);
  await mkdir(join(work, "lists", "partial"), { recursive: true });
  await mkdir(join(work, "archives", "partial"), { recursive: true });
  const private_ = {
    "Dir::Etc::sourcelist": sources,
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::Etc::preferences": "/dev/null",
    "Dir::Etc::preferencesparts": "/dev/null",
    "Dir::State::lists": join(work, "lists"),
    "Dir::Cache": work,
    "Dir::Cache::archives": join(work, "archives"),
    "APT::Get::List-Cleanup": "false",
    "APT::Sandbox::User": "root",
    "Acquire::Languages": "none",
    "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "false",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
  };
  const flags = Object.entries(private_).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const path = [env.PATH, "/usr/bin", "/bin", "/usr/sbin", "/sbin"].filter(Boolean).join(delimiter);
  const inWork = { env: { ...env, PATH: path, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" }, cwd: work };
  await run("apt-get", [...flags, "update"], { ...inWork, maxBuffer: 16 << 20, timeout: 180_000 });
  await run("apt-get", [...flags, "download", "nats-server/testing"], { ...inWork, timeout: 180_000 });
  const archive = (await readdir(work)).find((name) => name.endsWith(".deb"));
  if (!archive) throw new Error("apt downloaded no package");
  await run("dpkg-deb", ["-x", archive, "root"], inWork);
  return join(work, "root", "usr", "sbin", "nats-server");
}

/** The Debian mirror of this machine's own apt configuration, in either of its two formats. */
async function debianMirror(): Promise<string> {
  const folder = "/etc/apt/sources.list.d";
  const parts = await readdir(folder).catch(() => []);
  const files = parts.filter((name) => /\.(sources|list)$/.test(name)).map((name) => join(folder, name));
  for (const file of ["/etc/apt/sources.list", ...files]) {
    const text = await readFile(file, "utf8").catch(() => "");
    const mirror = mirrorIn(text);
    if (mirror) return mirror;
  }
  throw new Error("no Debian mirror stands in this machine's apt configuration");
}

/** Exported for its test. */
export function mirrorIn(sources: string): string | undefined {
  for (const line of sources.split("\n")) {
    const uris = /^\s*URIs:\s*(.+)$/.exec(line)?.[1] ?? /^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)/.exec(line)?.[1];
    const uri = uris
      ?.trim()
      .split(/\s+/)
      .find((candidate) => /^https?:\/\/.+\/debian\/?$/.test(candidate));
    if (uri) return uri.replace(/\/$/, "");
  }
  return undefined;
}

async function fetchFromGo(env: NodeJS.ProcessEnv, work: string, log: (line: string) => void): Promise<string> {
  const go = await findGo(env);
  if (!go) throw new Error("Go is not installed");
  log(`building ${GO_MODULE} with Go`);
  const home = env.HOME ?? work;
  const own = { GOBIN: work, GOFLAGS: "-mod=mod", CGO_ENABLED: "0", HOME: home };
  await run(go, ["install", GO_MODULE], { env: { ...env, ...own }, cwd: work, maxBuffer: 16 << 20, timeout: 900_000 });
  return join(work, "nats-server");
}
