/**
 * The lists of the operations of `auth` and of their handlers, made from the files that declare and answer them, so
 * that nobody keeps them by hand. They are committed: the compiler reads them, and says which handler is missing.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";

const ROOT = new URL("../../", import.meta.url);
const CONTRACTS = "shared/contracts/auth/";

/** The host answers `describe`; a door's handler takes those that it opens to. */
const NOT_LISTED: readonly string[] = ["describe", "platformControl", "supervisorAuthority"];

interface Declared {
  /** From the service's folder, without extension. */
  readonly path: string;
  /** The exported declaration. */
  readonly name: string;
}

const textOf = (path: string): string => readFileSync(new URL(path, ROOT), "utf8");

function declarations(): Declared[] {
  const files = readdirSync(new URL(CONTRACTS, ROOT), { recursive: true, encoding: "utf8" });
  const paths = files.flatMap((file) => (file.endsWith(".ts") ? [file.slice(0, -".ts".length)] : []));
  return paths.sort().flatMap((path) => {
    const name = /^export const (\w+) = (?:operation|describeOf)\(/m.exec(textOf(`${CONTRACTS}${path}.ts`))?.[1];
    return name === undefined ? [] : [{ path, name }];
  });
}

const handlerOf = (name: string): string => `handle${name.charAt(0).toUpperCase()}${name.slice(1)}`;

/** Every list by its path in the project. Throws where an operation has no handler at its path. */
export function lists(): Readonly<Record<string, string>> {
  const declared = declarations();
  const answered = declared.filter(({ name }) => name !== "authDescribe" && !NOT_LISTED.includes(name));
  for (const { path } of answered) {
    if (!existsSync(new URL(`services/auth/${path}.ts`, ROOT))) throw new Error(`no handler services/auth/${path}.ts`);
  }
  return { "shared/contracts/auth.ts": contractList(declared), "services/auth/handlers.ts": handlerList(answered) };
}

const contractList = (
  declared: readonly Declared[],
): string => `/** The operations of \`auth\`. Made by \`npm run docs\`. */
${declared.map(({ path, name }) => `import { ${name} } from "./auth/${path}.ts";`).join("\n")}
import { contractSet, type Operation } from "./operation.ts";

/** By the name under which a client of the authority calls it. */
export const authApi = {
${declared.map(({ name }) => (name === "authDescribe" ? `  describe: ${name},` : `  ${name},`)).join("\n")}
} as const;

export const authOperations: readonly Operation[] = Object.values(authApi);

export const authContracts = contractSet("ai.cotal.auth", authOperations);
`;

const handlerList = (
  answered: readonly Declared[],
): string => `/** Who answers which operation of \`auth\`; one without the other does not compile. Made by \`npm run docs\`. */
import type { authApi } from "../../shared/contracts/auth.ts";
${answered.map(({ path, name }) => `import { ${handlerOf(name)} } from "./${path}.ts";`).join("\n")}
import type { AuthHandler } from "./visit.ts";

/** The host answers \`describe\` itself; the doors' requests are answered by the others. */
export type Named = Omit<typeof authApi, ${NOT_LISTED.map((name) => `"${name}"`).join(" | ")}>;

export const HANDLERS: { readonly [N in keyof Named]: AuthHandler<Named[N]> } = {
${answered.map(({ name }) => `  ${name}: ${handlerOf(name)},`).join("\n")}
};
`;
