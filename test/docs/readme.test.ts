/** What the pages say of commands, flags, files and numbers is so. */
import { access, readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { codeBlocks, pageOf, ROOT } from "./code-blocks.ts";

const PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", ...(await chapters())];
const pages = new Map(await Promise.all(PAGES.map(async (path) => [path, await pageOf(path)] as const)));
const readme = pages.get("README.md") ?? "";
const { scripts } = JSON.parse(await pageOf("package.json")) as { scripts: Record<string, string> };

async function chapters(): Promise<string[]> {
  const names = await readdir(`${ROOT}docs`);
  return names.filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`);
}

const exists = (path: string): Promise<boolean> =>
  access(`${ROOT}${path}`).then(
    () => true,
    () => false,
  );

/** Anchors as a code host makes them from headings. */
const anchorsOf = (page: string): Set<string> =>
  new Set(
    [...page.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );

const COMMANDS =
  /^(init|idp|up|serve|gateway|actor|agent|platform|supervisor|instance|drain|repair|rotate|explain|doctor)\b/;

/** From one heading of README to the next of its rank. */
function sectionOf(title: string): string {
  const [, rest = ""] = readme.split(`\n## ${title}\n`);
  return rest.split("\n## ")[0] ?? "";
}

describe.each(PAGES)("%s", (path) => {
  const page = pages.get(path) ?? "";

  it("links to files and headings that exist", async () => {
    const broken: string[] = [];
    for (const [, target = ""] of page.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [file = "", anchor] = target.split("#");
      const to = file === "" ? path : normalize(join(dirname(path), file));
      if (!(await exists(to))) broken.push(target);
      else if (anchor !== undefined && !anchorsOf(await pageOf(to)).has(anchor)) broken.push(target);
    }
    expect(broken).toEqual([]);
  });

  it("names scripts that exist", () => {
    const named = [...page.matchAll(/npm\s+run\s+([a-z:]+)/g)].map(([, script = ""]) => script);
    expect(named.filter((script) => scripts[script] === undefined)).toEqual([]);
  });

  it("names source files that exist", async () => {
    const text = page.replace(/```[\s\S]*?```/g, "");
    const named = [...text.matchAll(/`((?:shared|services|gateway|test|docs)\/[\w./-]*)`/g)].map(
      ([, file = ""]) => file,
    );
    const real = named.filter((file) => !file.includes("run-pause")); // CONTRIBUTING's example
    const missing = await Promise.all(real.map(async (file) => ((await exists(file)) ? [] : [file])));
    expect(missing.flat()).toEqual([]);
  });
});

/** What a command prints with `--help`. */
async function helpOf(print: (argv: readonly string[]) => Promise<number>, ...args: string[]): Promise<string> {
  let printed = "";
  const spy = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  try {
    await print([...args, "--help"]);
    return printed;
  } finally {
    spy.mockRestore();
  }
}

describe("README's commands", () => {
  const shell = codeBlocks(readme)
    .filter(({ language }) => language === "sh")
    .flatMap(({ text }) => text.replaceAll("\\\n", " ").split("\n"))
    .map((line) => line.replace(/(^|\s)#.*$/, "").trim());
  const inBlocks = shell.flatMap((line) => /^npx mesh-authority (.+)$/.exec(line)?.[1] ?? []);
  const operating = sectionOf("Operate it");
  const inTable = [...operating.matchAll(/`(?:mesh-authority )?((?:[a-z]+-)*[a-z]+(?: [^`]*)?)`/g)].flatMap(
    ([, command = ""]) => (COMMANDS.test(command) ? [command] : []),
  );

  it("are commands of the command line, with flags that it knows", async () => {
    const [{ run }, { serve }, { gateway }, { up }] = await Promise.all([
      import("../../services/cli/main.ts"),
      import("../../services/main.ts"),
      import("../../gateway/main.ts"),
      import("../../services/launch/main.ts"),
    ]);
    const own: Record<string, (argv: readonly string[]) => Promise<number>> = { serve, gateway, up };
    const wrong: string[] = [];
    for (const command of [...inBlocks, ...inTable]) {
      const [name = "", second = "", ...more] = command.split(/\s+/);
      const nested = ["actor", "agent", "idp", "rotate"].includes(name);
      const mine = own[name];
      const help = mine ? await helpOf(mine) : await helpOf(run, name, ...(nested ? [second] : []));
      const usage = nested ? `${name} ${second}` : name;
      if (!help.includes("Usage:") || !help.includes(usage)) wrong.push(command);
      for (const flag of [second, ...more].filter((word) => word.startsWith("--"))) {
        if (!new RegExp(`${flag}\\b`).test(help)) wrong.push(`${usage}: ${flag}`);
      }
    }
    expect(inBlocks.length).toBeGreaterThan(8);
    expect(inTable.length).toBeGreaterThan(12);
    expect(wrong).toEqual([]);
  });

  it("start with the flags that npm start has", async () => {
    const { launch } = await import("../../services/launch/main.ts");
    const offered = [...(await helpOf(launch)).matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, flag = ""]) => flag);
    const listed = [...sectionOf("Requirements and options").matchAll(/^\| `(--[a-z-]+)/gm)].map(([, flag]) => flag);
    expect(listed.sort()).toEqual(offered.sort());
    const used = shell.flatMap((line) => (line.startsWith("npm start -- ") ? (line.match(/--[a-z-]+/g) ?? []) : []));
    expect(used.filter((flag) => !offered.includes(flag))).toEqual([]);
  });

  it("follow what npm start prints", async () => {
    const { hintsFor } = await import("../../services/launch/hints.ts");
    const gateway = { loopbackPort: 4_280, publicPort: 4_281, publicUrl: "http://127.0.0.1:4281" };
    const plan = {
      space: "dev",
      stateDir: `${process.cwd()}/state`,
      settings: { broker: { advertised: "nats://127.0.0.1:4222" }, gateway },
      idpPort: 4_282,
    };
    const hints = hintsFor(plan as unknown as Parameters<typeof hintsFor>[0]);
    for (const { command } of hints) expect(shell).toContain(command);
  });
});

describe("README's manager", () => {
  const file = "services/launch/example/manager.ts";

  it("is the one that the tour runs, in under eighty lines", async () => {
    const text = await pageOf(file);
    expect(codeBlocks(readme).find((block) => block.file === file)?.text).toBe(text);
    expect(text.trimEnd().split("\n").length).toBeLessThan(80);
    expect(await pageOf("services/launch/tour.ts")).toContain('from "./example/manager.ts"');
  });
});

describe("README's numbers", () => {
  it("are the metrics that the code has", async () => {
    const names = new Set<string>();
    for (const file of await readdir(`${ROOT}services`, { recursive: true })) {
      if (!file.endsWith(".ts")) continue;
      const text = await readFile(`${ROOT}services/${file}`, "utf8");
      for (const [, name = ""] of text.matchAll(/new (?:Counter|Gauge|Histogram)\(\{\s*name: "([a-z_]+)"/g)) {
        names.add(name);
      }
    }
    const documented = [...readme.matchAll(/`((?:authority|auth|custodian)_[a-z_]+)/g)].map(([, name = ""]) => name);
    expect(new Set(documented)).toEqual(names);
  });

  it("are the exit codes that processes have", async () => {
    const { EXIT } = await import("../../shared/exit.ts");
    const codes = [...readme.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
    expect(codes.sort((a, b) => a - b)).toEqual(Object.values(EXIT).sort((a, b) => a - b));
  });
});
