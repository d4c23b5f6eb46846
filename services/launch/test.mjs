/** `npm test`: installs what is missing, then lint, types and tests, each reported with its exit code. */
import { ensureInstalled, npm } from "./install.mjs";

ensureInstalled({ dev: true });
const results = [
  { name: "lint", code: npm("run", "--silent", "lint") },
  { name: "typecheck", code: npm("run", "--silent", "typecheck") },
  { name: "vitest", code: npm("run", "--silent", "vitest", "--", ...process.argv.slice(2)) },
];
for (const { name, code } of results) console.error(`${name}: ${code === 0 ? "ok" : `failed with exit code ${code}`}`);
process.exitCode = results.find(({ code }) => code !== 0)?.code ?? 0;
