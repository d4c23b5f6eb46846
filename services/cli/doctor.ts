/** `doctor`: looks at state, broker and services, and says what to change. */
import type { NatsConnection } from "@nats-io/nats-core";
import type { Command } from "commander";
import type { UserName } from "../../shared/credentials/users.ts";
import { isAuthorityError, reasonOf } from "../../shared/errors.ts";
import { directoryStore } from "../../shared/secrets/directory.ts";
import { openFolder } from "../../shared/secrets/folder.ts";
import { act, type Outcome } from "./action.ts";
import { accountFindings } from "./checks/accounts.ts";
import { brokerFindings } from "./checks/broker.ts";
import { chmodFor, fileFindings, remedyOfMissing } from "./checks/files.ts";
import { bad, type Finding, RELOAD } from "./checks/finding.ts";
import { providerFindings } from "./checks/providers.ts";
import { serviceFindings } from "./checks/services.ts";
import { EXIT } from "./failure.ts";
import { connectAs, type Globals, placeOf } from "./operator.ts";

export function doctorCommand(program: Command, outcome: Outcome): void {
  const doctor = program
    .command("doctor")
    .description("check files, accounts, providers, broker, clock and services, and say what to change")
    .addHelpText(
      "after",
      "\nExit code 0: nothing is wrong; 1: something is.\n\nExample:\n  mesh-authority doctor --json",
    );
  act(doctor, outcome, async (_, options, say) => {
    const findings = await examine(options);
    const wrong = findings.filter(({ ok }) => !ok).length;
    say.result(
      findings,
      [...findings.map(lineOf), wrong === 0 ? "nothing is wrong" : `${wrong} of ${findings.length} are wrong`].join(
        "\n",
      ),
    );
    return wrong === 0 ? EXIT.done : EXIT.refused;
  });
}

async function examine(globals: Globals): Promise<Finding[]> {
  const { stateDir, space } = await placeOf(globals);
  const folder = await openFolder(stateDir);
  const store = await directoryStore(stateDir);
  const over = (
    name: Exclude<UserName, "callout">,
    look: (connection: NatsConnection, inbox: string) => Promise<Finding[]>,
  ) => connected(globals, name, look);
  return [
    ...(await checked("files", () => fileFindings(folder, space))),
    ...(await checked("accounts", () => accountFindings(folder, store, space))),
    ...(await checked("identity providers", () => providerFindings(folder, space))),
    ...(await over("custodian_system", brokerFindings)),
    ...(await over("operator", (connection) => serviceFindings(connection, space, ["auth", "exchange", "custodian"]))),
    ...(await over("operator_callout", (connection) => serviceFindings(connection, space, ["callout"]))),
  ];
}

async function connected(
  globals: Globals,
  name: Exclude<UserName, "callout">,
  look: (connection: NatsConnection, inboxPrefix: string) => Promise<Finding[]>,
): Promise<Finding[]> {
  return checked(`connect as ${name}`, async () => {
    const { connection, inboxPrefix } = await connectAs(globals, name);
    try {
      return await look(connection, inboxPrefix);
    } finally {
      await connection.close();
    }
  });
}

/** What cannot even be looked at is a finding, too. */
async function checked(check: string, look: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await look();
  } catch (error) {
    const reason = reasonOf(error);
    return [bad(check, reason, remedyFor(error, reason))];
  }
}

function remedyFor(error: unknown, reason: string): string {
  const [, missing] = /^(\S+): is not there/.exec(reason) ?? [];
  if (missing !== undefined) return remedyOfMissing(missing);
  const chmod = chmodFor(reason);
  if (chmod !== undefined) return chmod;
  if (isAuthorityError(error, "unauthenticated")) return `${RELOAD}, if creds were rotated or a space added`;
  if (isAuthorityError(error, "unavailable")) return "start the broker, or name it with --servers";
  return "restore that file from a backup";
}

const lineOf = ({ ok, check, found, do: remedy }: Finding): string =>
  `${ok ? "ok  " : "FAIL"} ${check}: ${found}${remedy === undefined ? "" : `\n     → ${remedy}`}`;
