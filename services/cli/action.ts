/** Runs a command's work, and turns whatever becomes of it into output and an exit code. */
import type { Command } from "commander";
import { type Console, openConsole } from "./console.ts";
import { EXIT, failureOf } from "./failure.ts";
import type { Globals } from "./operator.ts";

/** What a command's work is given: its arguments, its options with the global ones, where to talk. */
export type Work<Options> = (
  args: readonly string[],
  options: Globals & Options,
  say: Console,
) => Promise<number | undefined>;

/** The exit code of the action that ran; commander itself has no place for one. */
export interface Outcome {
  exit: number;
}

export function act<Options extends object>(command: Command, outcome: Outcome, work: Work<Options>): Command {
  return command.action(async () => {
    const options = command.optsWithGlobals<Globals & Options>();
    const say = openConsole(options.json);
    try {
      outcome.exit = (await work(command.processedArgs, options, say)) ?? EXIT.done;
    } catch (error) {
      const failure = failureOf(error);
      say.failure(failure.value, failure.text);
      outcome.exit = failure.exit;
    }
  });
}
