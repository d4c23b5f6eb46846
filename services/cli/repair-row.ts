/** `repair-row`: the only way over a row that nothing can read any more. */
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { AuthorityError } from "../../shared/errors.ts";
import { systemPorts } from "../../shared/ports.ts";
import { repairRow } from "../offline/repair-row.ts";
import { act, type Outcome } from "./action.ts";
import { heard } from "./checks/services.ts";
import { WrongCommand, whyOf } from "./failure.ts";
import { connectAs, type Globals, placeOf } from "./operator.ts";
import { wholeNumber } from "./values.ts";

export function repairRowCommand(program: Command, outcome: Outcome): void {
  const command = program
    .command("repair-row")
    .description("write over one unreadable row of the authority's stream, with every auth stopped")
    .argument("<key>", "as the log names it, such as plane or gate.<uid>")
    .requiredOption("--revision <n>", "of the row that you have looked at", wholeNumber)
    .requiredOption("--value <file>", "JSON of what the row is to be")
    .addHelpText("after", "\nExample:\n  mesh-authority repair-row plane --revision 4711 --value plane.json");
  act<{ revision: number; value: string }>(command, outcome, async ([key], options, say) => {
    const { stateDir, space, settings } = await placeOf(options);
    const value = await readFile(options.value).catch((error: unknown) => {
      throw new WrongCommand(`--value cannot be read: ${whyOf(error)}`);
    });
    await refuseBesideAuth(options);
    const repaired = await repairRow({
      stateDir,
      space,
      servers: options.servers?.split(",") ?? settings.broker.advertised,
      tlsRequired: settings.broker.tlsRequired,
      key: String(key),
      at: options.revision,
      value,
      ports: systemPorts,
    });
    const shown = (text: string): string => JSON.stringify(Buffer.from(text, "base64").toString());
    say.result(
      repaired,
      `before: ${shown(repaired.before)}\nafter:  ${shown(repaired.after)}\nrevision ${repaired.revision}`,
    );
    return undefined;
  });
}

async function refuseBesideAuth(globals: Globals): Promise<void> {
  const { connection } = await connectAs(globals, "operator");
  try {
    const running = (await heard(connection)).filter(({ name }) => name === "auth");
    if (running.length === 0) return;
    throw new AuthorityError("failed-precondition", `${running.length} auth serve this space: stop every one first`);
  } finally {
    await connection.close();
  }
}
