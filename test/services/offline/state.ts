/** A state folder of a test, gone with it. */
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type InitOptions, initSpace } from "../../../services/offline/init.ts";
import type { PermissionsOf } from "../../../shared/credentials/users.ts";
import { systemPorts } from "../../../shared/ports.ts";
import { Space } from "../../../shared/tokens.ts";

export const space = Space.parse("demo");

/** Lets a user ask the server who it is, and nothing else. */
export const whoami: PermissionsOf = ({ nkey }) => ({
  pub: { allow: ["$SYS.REQ.USER.INFO", "$JS.API.INFO"], deny: [] },
  sub: { allow: [`_INBOX_${nkey}.>`], deny: [] },
});

export interface TestState {
  /** The state folder itself, which does not exist yet, in a folder that does. */
  readonly dir: string;
  readonly parent: string;
  init(more?: Partial<InitOptions>): ReturnType<typeof initSpace>;
  text(path: string): Promise<string>;
  /** Every file with its mode and content. */
  files(): Promise<Map<string, string>>;
  remove(): Promise<void>;
}

export async function testState(): Promise<TestState> {
  const parent = await mkdtemp(join(tmpdir(), "offline-"));
  const dir = join(parent, "state");
  return {
    dir,
    parent,
    init: (more = {}) => initSpace({ stateDir: dir, space, permissionsOf: whoami, ports: systemPorts, ...more }),
    text: (path) => readFile(join(dir, path), "utf8"),
    async files() {
      const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
      const files = new Map<string, string>();
      for (const entry of entries) {
        if (!entry.isFile()) continue;
        const full = join(entry.parentPath, entry.name);
        const mode = ((await stat(full)).mode & 0o777).toString(8);
        files.set(full.slice(dir.length + 1), `${mode} ${await readFile(full, "utf8")}`);
      }
      return files;
    },
    remove: () => rm(parent, { recursive: true, force: true }),
  };
}
