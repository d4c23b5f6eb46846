/** The command tree of `mesh-authority`. `serve`, `gateway` and `up` stand here for `--help` alone: `main.mjs` runs them. */
import { Command, CommanderError } from "commander";
import { Space } from "../../shared/tokens.ts";
import { VERSION } from "../version.ts";
import type { Outcome } from "./action.ts";
import { actorCommands } from "./actor.ts";
import { assignmentCommands } from "./assignment.ts";
import { doctorCommand } from "./doctor.ts";
import { explainCommand } from "./explain.ts";
import { EXIT } from "./failure.ts";
import { idpCommands } from "./idp.ts";
import { initCommand } from "./init.ts";
import { repairAccountsCommand } from "./repair-accounts.ts";
import { repairRowCommand } from "./repair-row.ts";
import { retirementCommands } from "./retirement.ts";
import { rotateCommands } from "./rotate.ts";
import { a, servers } from "./values.ts";

const HELP = `
Exit codes: 0 done, 1 refused, 2 wrong command, 75 nobody could answer now: repeat the same command.

Examples:
  mesh-authority init --space acme        make a space in ./state
  mesh-authority up                       run it: broker, services, gateway
  mesh-authority doctor                   find out what is wrong with it
  mesh-authority actor list               who may do what`;

const HINT = "--help has examples\n";

/** A wrong command, as a refusal is shown under `--json`. */
const wrong = (text: string) => ({
  error: {
    code: "bad-request",
    message: text
      .trim()
      .replace(/^error: /, "")
      .replaceAll("\n", " "),
  },
});

/** Resolves with the exit code. */
export async function run(argv: readonly string[]): Promise<number> {
  const outcome: Outcome = { exit: EXIT.done };
  try {
    await program(outcome, argv.includes("--json")).parseAsync(argv, { from: "user" });
    return outcome.exit;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  }
}

function program(outcome: Outcome, json: boolean): Command {
  const root = new Command("mesh-authority")
    .version(VERSION)
    .description("The credential authority of an agent mesh: make a space, run it, decide who may do what.")
    .option("--state <dir>", "folder of keys and settings", "state")
    .option("--space <name>", "which space, where the folder has several", a(Space))
    .option("--servers <urls>", "brokers; default: the one the settings advertise", servers)
    .option("--json", "result as JSON on stdout, a failure as JSON on stderr", false)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: (text, write) => write(json ? `${JSON.stringify(wrong(text))}\n` : text + HINT) })
    .addHelpText("after", HELP)
    .exitOverride();
  initCommand(root, outcome);
  idpCommands(root, outcome);
  root.command("up").description("run a space: broker, services and gateway under one supervisor");
  root.command("serve").description("host services of a space in one process");
  root.command("gateway").description("translate HTTP to the authority's operations, in one process");
  actorCommands(root, outcome);
  assignmentCommands(root, outcome);
  retirementCommands(root, outcome);
  rotateCommands(root, outcome);
  explainCommand(root, outcome);
  doctorCommand(root, outcome);
  repairAccountsCommand(root, outcome);
  repairRowCommand(root, outcome);
  return root;
}
