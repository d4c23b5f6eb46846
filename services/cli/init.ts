/** `init`: makes a space, from nothing or on an operator that exists. */
import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { permissionsOf } from "../../shared/credentials/user-permissions.ts";
import { systemPorts } from "../../shared/ports.ts";
import { openFolder } from "../../shared/secrets/folder.ts";
import { spacesIn } from "../../shared/secrets/spaces.ts";
import { Space } from "../../shared/tokens.ts";
import { DEFAULT_SETTINGS, initSpace } from "../offline/init.ts";
import { act, type Outcome } from "./action.ts";
import { asWrongCommand, WrongCommand } from "./failure.ts";
import { pinOfText } from "./idp.ts";
import { port } from "./values.ts";

interface Options {
  readonly server: string;
  readonly tls: boolean;
  readonly loopbackPort: number;
  readonly publicPort?: number;
  readonly publicUrl?: string;
  readonly trustedProxy: boolean;
  readonly idp?: readonly string[];
  readonly import?: string;
}

export function initCommand(program: Command, outcome: Outcome): void {
  const init = program
    .command("init")
    .description("make a space: accounts, keys, users, settings and the broker's configuration; what is there is kept")
    .option("--server <url>", "what clients are told to connect to", advertised, DEFAULT_SETTINGS.broker.advertised)
    .option("--tls", "clients must use TLS", false)
    .option("--loopback-port <n>", "gateway for this machine", port, DEFAULT_SETTINGS.gateway.loopbackPort)
    .option("--public-port <n>", "gateway behind a proxy that terminates TLS", port)
    .option("--public-url <url>", "how the world reaches that proxy", publicUrl)
    .option("--trusted-proxy", "believe its X-Forwarded-For", false)
    .option("--idp <issuer,audience,jwks[,algorithm…]>", "an identity provider; may be given again", collect)
    .option("--import <dir>", "operator.jwt and .nk, system.jwt and .nk, optionally space.jwt and .nk")
    .addHelpText(
      "after",
      "\nExamples:\n  mesh-authority init --space acme \\\n" +
        "    --idp https://login.acme.example,mesh,https://login.acme.example/jwks,RS256\n" +
        "  mesh-authority init --space acme --import ~/exported-by-nsc",
    );
  act<Options>(init, outcome, async (_, options, say) => {
    if (options.space === undefined) throw new WrongCommand("name the space with --space");
    if (options.publicUrl !== undefined && options.publicPort === undefined) {
      throw new WrongCommand("--public-url needs --public-port, where the gateway listens for the proxy");
    }
    const pins = options.idp?.map(pinOfText);
    const { settings, created } = await initSpace({
      stateDir: resolve(options.state),
      space: Space.parse(options.space),
      permissionsOf,
      ports: systemPorts,
      settings: {
        broker: { advertised: options.server, tlsRequired: options.tls },
        gateway: {
          loopbackPort: options.loopbackPort,
          ...(options.publicPort === undefined ? {} : { publicPort: options.publicPort }),
          ...(options.publicUrl === undefined ? {} : { publicUrl: options.publicUrl }),
          ...(options.trustedProxy ? { trustedProxy: true } : {}),
        },
      },
      ...(pins === undefined ? {} : { pins }),
      ...(options.import === undefined ? {} : { importDir: resolve(options.import) }),
    }).catch(asWrongCommand);
    const next = created
      ? [
          ...(pins === undefined ? ["next: `mesh-authority idp add`, since nobody can log in yet"] : []),
          "next: `mesh-authority up` for all on this machine, or nats-server, `serve` and `gateway` one by one",
          ...(await amongOthers(options.state, options.space)),
        ].join("\n")
      : "it was there already: nothing of it was changed";
    say.result({ settings, created }, `space ${settings.space} in ${resolve(options.state)}\n${next}`);
    return undefined;
  });
}

/** Other commands take the only space there is, and have to be told where there are more. */
async function amongOthers(state: string, space: string): Promise<string[]> {
  const spaces = await spacesIn(await openFolder(resolve(state)));
  return spaces.length > 1 ? [`each with --space ${space}, since the folder holds others`] : [];
}

const collect = (text: string, before: readonly string[] = []): string[] => [...before, text];

function advertised(text: string): string {
  if (/^(nats|tls|ws|wss):\/\/[^\s/]+$/.test(text)) return text;
  throw new InvalidArgumentError("an address such as nats://mesh.example:4222.");
}

function publicUrl(text: string): string {
  if (/^https?:\/\//.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError("an address such as https://login.mesh.example.");
}
