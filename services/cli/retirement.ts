/** `agent retire` and `drain-abandon`: ways out where nobody is left to ask. */
import type { Command } from "commander";
import { agentRetire } from "../../shared/contracts/auth/retirement/agent-retire.ts";
import { drainAbandon } from "../../shared/contracts/auth/retirement/drain-abandon.ts";
import { Actor, Owner, Uid } from "../../shared/tokens.ts";
import { act, type Outcome } from "./action.ts";
import { asOperator } from "./operator.ts";
import { a, requestId, wholeNumber } from "./values.ts";

export function retirementCommands(program: Command, outcome: Outcome): void {
  const retire = program
    .command("agent")
    .description("managed agents")
    .command("retire")
    .description("retire an agent whose manager cannot ask for it any more")
    .argument("<owner>", "u_… or p_…", a(Owner))
    .argument("<actor>", "the agent", a(Actor))
    .argument("<uid>", "the incarnation", a(Uid))
    .addHelpText(
      "after",
      "\nExample, with what `actor list --kind managed` shows:\n" +
        "  mesh-authority agent retire u_abcdefghijklmnopqrstuvwxy2 coder 534wl9gp0jk5pcglv6n40udvzxdipuq",
    );
  act(retire, outcome, async ([owner, actor, uid], options, say) => {
    const lifecycleUid = Uid.parse(uid);
    const args = { requestId: requestId(), owner: Owner.parse(owner), actor: Actor.parse(actor), lifecycleUid };
    const result = await asOperator(options, (client) => client.call(agentRetire, args));
    const before = "alreadyRetired" in result && result.alreadyRetired ? "was retired before" : "is retired";
    say.result(result, result.retired ? `${lifecycleUid} ${before}` : `nothing stands at ${lifecycleUid}`);
    return undefined;
  });

  const abandon = program
    .command("drain-abandon")
    .description("end an obligation that nobody is left to settle, so that a retirement can finish")
    .argument("<opId>", "the retirement that waits for it", a(Uid))
    .argument("<key>", "oblig.<uid>.…, as the refusal names it")
    .argument("<revision>", "of the row that you have looked at", wholeNumber)
    .addHelpText(
      "after",
      "\nExample:\n  mesh-authority drain-abandon 0a1b2c3d4e5f60718293a4b5c6 \\\n" +
        "    oblig.534wl9gp0jk5pcglv6n40udvzxdipuq.run-start.b1 4711",
    );
  act(abandon, outcome, async ([opId, key, revision], options, say) => {
    const args = { requestId: requestId(), opId: Uid.parse(opId), key: String(key), revision: Number(revision) };
    const result = await asOperator(options, (client) => client.call(drainAbandon, args));
    say.result(result, `${result.key} is abandoned; the retirement ${result.opId} goes on`);
    return undefined;
  });
}
