/** `rotate issuer` and `rotate creds`: new keys beside running services. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { permissionsOf } from "../../shared/credentials/user-permissions.ts";
import { isUserName, USER_NAMES, type UserName } from "../../shared/credentials/users.ts";
import { systemPorts } from "../../shared/ports.ts";
import { type IssuerStep, rotateCreds, rotateIssuer } from "../offline/rotate.ts";
import { act, type Outcome } from "./action.ts";
import { WrongCommand } from "./failure.ts";
import { placeOf } from "./operator.ts";

interface IssuerOptions {
  readonly next?: true;
  readonly activate?: true;
  readonly retire?: string;
  readonly compromised?: string;
}

export function rotateCommands(program: Command, outcome: Outcome): void {
  const rotate = program.command("rotate").description("replace keys while the services run");

  const issuer = rotate
    .command("issuer")
    .description("one step towards another key for bearers; running services take it over within 30 s")
    .option("--next", "publish a fresh key, which does not sign yet")
    .option("--activate", "let it sign, once every client can know it (365 s)")
    .option("--retire <kid>", "remove a key that stopped long enough ago (1,205 s)")
    .addOption(new Option("--compromised <kid>", "remove a key at once; its bearers end at their next connect"))
    .addHelpText(
      "after",
      "\nIn order: --next, --activate, --retire <former kid>. Each refuses if it is too early.\n" +
        "\nExample:\n  mesh-authority rotate issuer --next",
    );
  act<IssuerOptions>(issuer, outcome, async (_, options, say) => {
    const { stateDir, space } = await placeOf(options);
    const file = await rotateIssuer({ stateDir, space, ports: systemPorts, change: stepOf(options) });
    const keys = file.keys.map(({ kid, activeAt, stoppedAt }) => {
      const state = stoppedAt !== undefined ? "stopped" : activeAt === undefined ? "published" : "signs";
      return { kid, state };
    });
    const lines = keys.map(({ kid, state }) => `  ${kid}  ${state}`);
    say.result({ rev: file.rev, keys }, [`issuer keys, revision ${file.rev}:`, ...lines].join("\n"));
    return undefined;
  });

  const creds = rotate
    .command("creds")
    .description("give a provisioned user a new key; the broker's next reload ends the old one's connections")
    .argument("<name>", USER_NAMES.join(", "), userName)
    .addHelpText("after", "\nExample:\n  mesh-authority rotate creds exchange && nats-server --signal reload");
  act(creds, outcome, async ([name], options, say) => {
    const { stateDir, space } = await placeOf(options);
    const rotated = await rotateCreds({
      stateDir,
      space,
      ports: systemPorts,
      name: userName(String(name)),
      permissionsOf,
    });
    const next = `now: nats-server --signal reload, then restart what uses ${name}`;
    say.result(rotated, `${name} is ${rotated.nkey}\n${next}`);
    return undefined;
  });
}

function userName(text: string): UserName {
  if (isUserName(text)) return text;
  throw new InvalidArgumentError(`one of ${USER_NAMES.join(", ")}.`);
}

function stepOf({ next, activate, retire, compromised }: IssuerOptions): IssuerStep {
  const steps: IssuerStep[] = [
    ...(next ? [{ step: "next" as const }] : []),
    ...(activate ? [{ step: "activate" as const }] : []),
    ...(retire === undefined ? [] : [{ step: "retire" as const, kid: retire }]),
    ...(compromised === undefined ? [] : [{ step: "compromised" as const, kid: compromised }]),
  ];
  const [step, ...more] = steps;
  if (step === undefined || more.length > 0) {
    throw new WrongCommand("give exactly one of --next, --activate, --retire, --compromised");
  }
  return step;
}
