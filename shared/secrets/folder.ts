/** Files of one folder that nobody else can read, write, or aim elsewhere (identity §1.1). */
import {
  type FileHandle,
  constants as flags,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  rename,
  unlink,
} from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { SECRETS } from "../limits.ts";
import { type Ports, systemPorts } from "../ports.ts";
import { refused } from "./document.ts";

/** `secret`: 0600, for the process user alone. `public`: 0644. */
export type Exposure = "secret" | "public";

const MODES = { secret: 0o600, public: 0o644 } as const;
const FOLDER_MODE = 0o700;
/** What others must not have: of a secret anything, of the rest writing. */
const FORBIDDEN = { secret: 0o077, public: 0o022 } as const;
const SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

/** All paths are relative to the folder and use `/`. */
export interface Folder {
  readonly path: string;
  /** Undefined if there is none. Anything but a regular file of ours, of that exposure, refuses and names the path. */
  read(path: string, exposure: Exposure): Promise<Uint8Array | undefined>;
  /** Whole and durable, or not there; false = something is there. */
  create(path: string, bytes: Uint8Array, exposure: Exposure): Promise<boolean>;
  /** Whole and durable, in place of what was there. */
  replace(path: string, bytes: Uint8Array, exposure: Exposure): Promise<void>;
  remove(path: string): Promise<void>;
  /** What is directly in the folder itself. */
  names(): Promise<string[]>;
}

/** `make` creates the folder with mode 0700; without it a missing one refuses. */
export async function openFolder(
  path: string,
  options: { readonly make?: boolean; readonly ports?: Pick<Ports, "random"> } = {},
): Promise<Folder> {
  const folder = new DiskFolder(resolve(path), options.ports ?? systemPorts);
  if (options.make) await mkdir(folder.path, { recursive: true, mode: FOLDER_MODE });
  if (!(await folder.usable(folder.path, FORBIDDEN.secret))) throw refused(folder.path, "is not there");
  return folder;
}

class DiskFolder implements Folder {
  readonly path: string;
  readonly #ports: Pick<Ports, "random">;

  constructor(path: string, ports: Pick<Ports, "random">) {
    this.path = path;
    this.#ports = ports;
  }

  async read(path: string, exposure: Exposure): Promise<Uint8Array | undefined> {
    const full = this.#full(path);
    if (!(await this.#reachable(path))) return undefined;
    const handle = await openOurs(full);
    if (handle === undefined) return undefined;
    try {
      const stat = await handle.stat();
      if (!stat.isFile()) throw refused(full, "is no regular file");
      refuseForeign(full, stat, FORBIDDEN[exposure]);
      if (stat.size > SECRETS.maxBytes) throw refused(full, `is larger than ${SECRETS.maxBytes} bytes`);
      return new Uint8Array(await handle.readFile());
    } finally {
      await handle.close();
    }
  }

  async create(path: string, bytes: Uint8Array, exposure: Exposure): Promise<boolean> {
    const temporary = await this.#temporary(path, bytes, exposure);
    try {
      await link(temporary, this.#full(path));
    } catch (error) {
      if (codeOf(error) === "EEXIST") return false;
      throw error;
    } finally {
      await unlink(temporary);
    }
    await syncFolder(dirname(temporary));
    return true;
  }

  async replace(path: string, bytes: Uint8Array, exposure: Exposure): Promise<void> {
    const temporary = await this.#temporary(path, bytes, exposure);
    await rename(temporary, this.#full(path));
    await syncFolder(dirname(temporary));
  }

  async remove(path: string): Promise<void> {
    if (!(await this.#reachable(path))) return;
    await unlink(this.#full(path)).catch(unlessMissing);
  }

  async names(): Promise<string[]> {
    await this.#reachable("any");
    return (await readdir(this.path)).sort();
  }

  /** Whether a folder is there; refuses a link, somebody else's, or one that others may touch. */
  async usable(full: string, forbidden: number): Promise<boolean> {
    const stat = await lstat(full).catch(unlessMissing);
    if (stat === undefined) return false;
    if (!stat.isDirectory()) throw refused(full, stat.isSymbolicLink() ? "is a symbolic link" : "is no folder");
    refuseForeign(full, stat, forbidden);
    return true;
  }

  /** Whether every folder on the way to the file is there, each checked. */
  async #reachable(path: string): Promise<boolean> {
    if (!(await this.usable(this.path, FORBIDDEN.secret))) throw refused(this.path, "is not there");
    for (const full of this.#ancestors(path)) if (!(await this.usable(full, FORBIDDEN.public))) return false;
    return true;
  }

  /** The file's content beside its place, on disk before it gets its name. */
  async #temporary(path: string, bytes: Uint8Array, exposure: Exposure): Promise<string> {
    for (const full of this.#ancestors(path)) await mkdir(full, { mode: FOLDER_MODE }).catch(unlessThere);
    await this.#reachable(path);
    const temporary = `${this.#full(path)}.${Buffer.from(this.#ports.random(8)).toString("hex")}.tmp`;
    const handle = await open(temporary, "wx", MODES[exposure]);
    try {
      await handle.chmod(MODES[exposure]); // whatever the umask is
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    return temporary;
  }

  #full(path: string): string {
    if (!path.split("/").every((segment) => SEGMENT.test(segment))) throw refused(this.path, "has no such path");
    return join(this.path, path);
  }

  #ancestors(path: string): string[] {
    this.#full(path);
    const segments = path.split("/").slice(0, -1);
    return segments.map((_, i) => join(this.path, ...segments.slice(0, i + 1)));
  }
}

function refuseForeign(full: string, stat: { uid: number; mode: number }, forbidden: number): void {
  if (process.getuid && stat.uid !== process.getuid()) throw refused(full, "belongs to another user");
  const mode = stat.mode & 0o777;
  if (mode & forbidden)
    throw refused(full, `has mode 0${mode.toString(8)}, at most 0${(0o777 & ~forbidden).toString(8)}`);
}

/** Never through a link, and never waiting for the writer of a pipe. */
async function openOurs(full: string): Promise<FileHandle | undefined> {
  try {
    return await open(full, flags.O_RDONLY | flags.O_NOFOLLOW | flags.O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    if (codeOf(error) === "ELOOP") throw refused(full, "is a symbolic link");
    throw refused(full, `cannot be read (${codeOf(error)})`, error);
  }
}

/** A name is durable once its folder is. */
async function syncFolder(full: string): Promise<void> {
  const handle = await open(full, flags.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}

function unlessMissing(error: unknown): undefined {
  if (codeOf(error) !== "ENOENT") throw error;
}

function unlessThere(error: unknown): void {
  if (codeOf(error) !== "EEXIST") throw error;
}
