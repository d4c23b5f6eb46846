/** `npm run bench`: every `*.bench.ts` of this folder in turn, then each comparison with its target in one list. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { VERDICTS } from "./verdict.ts";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));

/** Runs one to its end, in a process of its own; its comparisons, or nothing if it failed. */
async function run(file: string): Promise<string[] | undefined> {
  const child = spawn(process.execPath, ["--import", "tsx", `${FOLDER}${file}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const compared: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (VERDICTS.some((word) => line.startsWith(`${word} `))) compared.push(line);
    else console.log(line);
  });
  const [code] = await once(child, "close");
  return code === 0 ? compared : undefined;
}

const wanted = process.argv.slice(2);
const files = (await readdir(FOLDER)).filter((name) => name.endsWith(".bench.ts")).sort();
const chosen = files.filter((file) => wanted.length === 0 || wanted.some((name) => file.startsWith(name)));
const compared: string[] = [];
const failed: string[] = [];
for (const file of chosen) {
  console.log(`\n${file}, load ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} processors`);
  const lines = await run(file);
  if (lines) compared.push(...lines);
  else failed.push(file);
}
console.log(`\n${compared.join("\n")}`);
const passed = compared.filter((line) => line.startsWith(VERDICTS[0])).length;
console.log(`${passed} of ${compared.length} targets met${failed.length > 0 ? `; failed: ${failed.join(", ")}` : ""}`);
// A target missed says something of this machine, too; a benchmark that does not run says something of the code.
process.exitCode = failed.length > 0 || chosen.length === 0 ? 1 : 0;
