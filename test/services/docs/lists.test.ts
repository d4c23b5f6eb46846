/** Adding an operation is three files; everything else is made from them. */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lists } from "../../../services/docs/lists.ts";
import { ROOT } from "../../docs/code-blocks.ts";
import { run } from "../../interop/run.ts";

it("are the committed ones; `npm run docs` writes them", async () => {
  for (const [path, text] of Object.entries(lists())) expect(await readFile(`${ROOT}${path}`, "utf8"), path).toBe(text);
});

const DECLARATION = `
import Type from "typebox";
import { RequestId } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";

export const actorCount = operation({
  service: "auth",
  name: "actor-count",
  summary: "Counts actors",
  effect: "read",
  input: Closed({ requestId: RequestId.schema }),
  output: Closed({ requestId: RequestId.schema, actors: Type.Integer({ minimum: 0, maximum: 9_007_199_254_740_991 }) }),
  callers: ["operator"],
  example: { requestId: EXAMPLE.requestId },
});
`;
const HANDLER = `
import type { actorCount } from "../../../shared/contracts/auth/actors/actor-count.ts";
import { actorRows } from "../../../shared/rows/actor.ts";
import type { AuthHandler } from "../visit.ts";

export const handleActorCount: AuthHandler<typeof actorCount> = async ({ args, context, work }) => {
  const { entries } = await context.store.scan(actorRows, {}, work);
  return { requestId: args.requestId, actors: entries.length };
};
`;
const WRITTEN = {
  "shared/contracts/auth/actors/actor-count.ts": DECLARATION,
  "services/auth/actors/actor-count.ts": HANDLER,
  "test/services/auth/actors/actor-count.test.ts": "export {};\n",
};
/** What the project makes of the new operation. */
const PROBE = `
import { authEndpoints } from "./services/auth/endpoints.ts";
import { authority } from "./shared/authority.ts";
import { createKeyPair } from "./shared/credentials/nkeys.ts";
import { permissionsOf } from "./shared/credentials/user-permissions.ts";
import { provisionedUser } from "./shared/credentials/users.ts";
import { Space } from "./shared/tokens.ts";

const rows = JSON.stringify(permissionsOf(provisionedUser(Space.parse("demo"), "operator", createKeyPair("user").public)));
const endpoint = authEndpoints({} as never).some(({ operation }) => operation.name === "actor-count");
const call: unknown = authority({} as never).actorCount;
console.log(JSON.stringify({ endpoint, call: typeof call, granted: rows.includes(".actor-count.") }));
`;

describe("an operation that is added", () => {
  let copy: string;
  let before: ReadonlyMap<string, string>;
  beforeAll(async () => {
    copy = await mkdtemp(join(tmpdir(), "adding-"));
    for (const name of ["shared", "services", "gateway", "docs", "package.json", "tsconfig.json"]) {
      await cp(`${ROOT}${name}`, join(copy, name), { recursive: true });
    }
    await symlink(`${ROOT}node_modules`, join(copy, "node_modules"));
    await mkdir(join(copy, "test/services/auth/actors"), { recursive: true });
    before = await texts();
  });
  afterAll(() => rm(copy, { recursive: true, force: true }));

  const node = (...args: string[]) => run(process.execPath, args, { ms: 60_000, cwd: copy });
  const tsx = (file: string) => node("--import", import.meta.resolve("tsx"), file);
  async function texts(): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const folder of ["shared", "services", "docs", "test"]) {
      for (const entry of await readdir(join(copy, folder), { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name);
        if (entry.isFile()) found.set(path.slice(copy.length + 1), await readFile(path, "utf8"));
      }
    }
    return found;
  }
  const changed = async (): Promise<string[]> =>
    [...(await texts())].flatMap(([file, text]) => (before.get(file) === text ? [] : [file])).sort();

  it("is a declaration, a handler and a test: the rest is made, and the compiler is content", async () => {
    for (const [file, content] of Object.entries(WRITTEN)) await writeFile(join(copy, file), content);
    expect(await changed()).toEqual(Object.keys(WRITTEN).sort());
    for (const script of ["services/docs/write.ts", "shared/contracts/publish.ts"]) {
      expect(await tsx(script)).toMatchObject({ code: 0, stderr: "" });
    }
    const made = (await changed()).filter((file) => !Object.hasOwn(WRITTEN, file));
    expect(made).toEqual([
      "docs/reference/operations.md",
      "services/auth/handlers.ts",
      "shared/contracts/auth.ts",
      "shared/contracts/published.json",
    ]);
    await writeFile(join(copy, "probe.ts"), PROBE);
    const probed = await tsx("probe.ts");
    expect(probed).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(probed.stdout)).toEqual({ endpoint: true, call: "function", granted: true });
    const compiled = await node("node_modules/typescript/bin/tsc", "-p", ".");
    expect(compiled).toMatchObject({ code: 0, stdout: "" });
  }, 180_000);

  it("is not made without its handler", async () => {
    await rm(join(copy, "services/auth/actors/actor-count.ts"));
    const ran = await tsx("services/docs/write.ts");
    expect(ran.code).not.toBe(0);
    expect(ran.stderr).toContain("no handler services/auth/actors/actor-count.ts");
  });
});
