/** The command tree of `mesh-authority`. `serve`, `gateway` and `up` stand here for `--help` alone: `main.mjs` runs them. */
import { Command, CommanderError } from "commander";
import type { Outcome } from "./action.ts";
import { actorCommands } from "./actor.ts";
import { assignmentCommands } from "./assignment.ts";
import { doctorCommand } from "./doctor.ts";
import { explainCommand } from "./explain.ts";
import { EXIT } from "./failure.ts";
import { initCommand } from "./init.ts";
import { repairRowCommand } from "./repair-row.ts";
import { retirementCommands } from "./retirement.ts";
import { rotateCommands } from "./rotate.ts";

const HELP = `
Exit codes: 0 done, 1 refused, 2 wrong command, 75 nobody could answer now: repeat the same command.

Examples:
  mesh-authority init --space acme        make a space in ./state
  mesh-authority up                       run it: broker, services, gateway
  mesh-authority doctor                   find out what is wrong with it
  mesh-authority actor list               who may do what`;

/** Resolves with the exit code. */
export async function run(argv: readonly string[]): Promise<number> {
  const outcome: Outcome = { exit: EXIT.done };
  try {
    await program(outcome).parseAsync(argv, { from: "user" });
    return outcome.exit;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  }
}

function program(outcome: Outcome): Command {
  const root = new Command("mesh-authority")
    .description("The credential authority of an agent mesh: make a space, run it, decide who may do what.")
    .option("--state <dir>", "folder of keys and settings", "state")
    .option("--space <name>", "which space, where the folder has several")
    .option("--servers <urls>", "brokers; default: the one the settings advertise")
    .option("--json", "result as JSON on stdout, a failure as JSON on stderr", false)
    .configureHelp({ showGlobalOptions: true })
    .addHelpText("after", HELP)
    .exitOverride();
  initCommand(root, outcome);
  root.command("up").description("run a space: broker, services and gateway under one supervisor");
  root.command("serve").description("host services of a space in one process");
  root.command("gateway").description("translate HTTP to the authority's operations, in one process");
  actorCommands(root, outcome);
  assignmentCommands(root, outcome);
  retirementCommands(root, outcome);
  rotateCommands(root, outcome);
  explainCommand(root, outcome);
  doctorCommand(root, outcome);
  repairRowCommand(root, outcome);
  return root;
}
