/** Runs the example at the top of a module as it stands there. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** What it printed. `given` are the names that the example takes from its reader. */
export async function runExample(path: string, given: Readonly<Record<string, unknown>>): Promise<string[]> {
  const text = await readFile(join(ROOT, path), "utf8");
  const code = /```ts\n([\s\S]*?)```/.exec(text)?.[1]?.replace(/^ \* ?/gm, "");
  if (code === undefined) throw new Error(`${path} has no example`);
  const imports = code.match(/^import .*$/gm) ?? [];
  const body = code.replace(/^import .*$/gm, "");
  const folder = await mkdtemp(join(ROOT, "test", "shared", ".example-"));
  try {
    const file = join(folder, "example.ts");
    const names = ["console", ...Object.keys(given)].join(", ");
    const own = imports.map((line) => line.replaceAll('"./', '"../../../'));
    await writeFile(file, `${own.join("\n")}\nexport async function run({ ${names} }) {\n${body}\n}\n`);
    const printed: string[] = [];
    const module: { run(names: object): Promise<void> } = await import(file);
    await module.run({ ...given, console: { log: (line: unknown) => void printed.push(String(line)) } });
    return printed;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
