/** `explain <ref>`: why a connection was denied, from the callout's log. */
import { once } from "node:events";
import { createReadStream, type ReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { AuthorityError } from "../../shared/errors.ts";
import { type Explanation, explain } from "../callout/explain.ts";
import { act, type Outcome } from "./action.ts";
import { WrongCommand, whyOf } from "./failure.ts";

export function explainCommand(program: Command, outcome: Outcome): void {
  const command = program
    .command("explain")
    .description("say why a connection was denied and what to do, from the reference that the broker logged")
    .argument("<ref>", "what stands after ref= in the broker's log")
    .option("--log <file...>", "the callout's log, - for stdin; default: the logs in the state folder")
    .addHelpText(
      "after",
      "\nExamples:\n  mesh-authority explain 7Qm…\n  journalctl -o cat -u mesh-callout | mesh-authority explain 7Qm… --log -",
    );
  act<{ log?: string[] }>(command, outcome, async ([ref], options, say) => {
    const files = options.log ?? (await logsOf(options.state));
    for (const file of files) {
      const input = file === "-" ? process.stdin : await opened(file);
      const explanation = await explain(createInterface({ input }), String(ref));
      if (!explanation) continue;
      say.result(explanation, textOf(explanation));
      return undefined;
    }
    const where = files.length === 0 ? `no log in ${options.state}` : files.join(", ");
    throw new AuthorityError("not-found", `no such reference (searched: ${where})`, {
      reason: "every callout has its own log: name those of the other replicas with --log",
    });
  });
}

async function opened(file: string): Promise<ReadStream> {
  const stream = createReadStream(file);
  await once(stream, "open").catch((error: unknown) => {
    throw new WrongCommand(`--log cannot be read: ${whyOf(error)}`);
  });
  return stream;
}

async function logsOf(stateDir: string): Promise<string[]> {
  const folder = join(stateDir, "log");
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => /^callout(-\d+)?\.log$/.test(name)).map((name) => join(folder, name));
}

function textOf({ line, at, advice }: Explanation): string {
  const { decision, code, check, reason, principal, uid, view, serverId, clientHost } = line;
  const facts: [string, string | undefined][] = [
    ["when", at],
    ["decision", [decision, code].filter(Boolean).join(", ")],
    ["check", check],
    ["reason", reason],
    ["who", principal && `${principal}, incarnation ${uid}`],
    ["view", view],
    ["from", clientHost],
    ["server", serverId],
    ["do", advice],
  ];
  return facts
    .filter((fact): fact is [string, string] => fact[1] !== undefined)
    .map(([name, value]) => `${name.padEnd(9)} ${value}`)
    .join("\n");
}
