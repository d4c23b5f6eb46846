/** `repair-accounts`: what `doctor` finds wrong with the accounts, put right. */
import type { Command } from "commander";
import { systemPorts } from "../../shared/ports.ts";
import { repairAccounts } from "../offline/repair-accounts.ts";
import { act, type Outcome } from "./action.ts";
import { placeOf } from "./operator.ts";

export function repairAccountsCommand(program: Command, outcome: Outcome): void {
  const command = program
    .command("repair-accounts")
    .description("sign the accounts anew where they do not say what the authority needs; what else they say stays")
    .option("--drop-signing-keys", "take signing keys that are not ours out of the space account", false)
    .addHelpText(
      "after",
      "\nNeeds broker/root.json. Users of the space whom a dropped key signed are refused from the reload on.\n" +
        "\nExample:\n  mesh-authority repair-accounts && nats-server --signal reload",
    );
  act<{ dropSigningKeys: boolean }>(command, outcome, async (_, options, say) => {
    const { stateDir, space } = await placeOf(options);
    const { dropSigningKeys } = options;
    const result = await repairAccounts({ stateDir, space, dropSigningKeys, ports: systemPorts });
    const { repaired } = result;
    const signed = repaired.length === 0 ? "nothing was wrong" : `signed anew: ${repaired.join(", ")}`;
    say.result(result, repaired.length === 0 ? signed : `${signed}\nnow: nats-server --signal reload`);
    return undefined;
  });
}
