/** What the two operations of the kind `manager-run-attempt` share. */
import { account, echo, envelope, Identities, proof } from "../manager-envelope.ts";

export const RUN_ATTEMPT = "manager-run-attempt";

export const attemptInput = { ...envelope(RUN_ATTEMPT), ...proof, ...account };
export const attemptOutput = { ...echo(RUN_ATTEMPT), ...proof, ...account, identities: Identities };
