/** `init`: makes a space, from nothing or on an operator that exists. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { permissionsOf } from "../../shared/credentials/user-permissions.ts";
import { AuthorityError } from "../../shared/errors.ts";
import { systemPorts } from "../../shared/ports.ts";
import { Space } from "../../shared/tokens.ts";
import { DEFAULT_SETTINGS, initSpace } from "../offline/init.ts";
import { act, type Outcome } from "./action.ts";
import { a, wholeNumber } from "./values.ts";

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
    .option("--server <url>", "what clients are told to connect to", DEFAULT_SETTINGS.broker.advertised)
    .option("--tls", "clients must use TLS", false)
    .option("--loopback-port <n>", "gateway for this machine", wholeNumber, DEFAULT_SETTINGS.gateway.loopbackPort)
    .option("--public-port <n>", "gateway behind a proxy that terminates TLS", wholeNumber)
    .option("--public-url <url>", "how the world reaches that proxy")
    .option("--trusted-proxy", "believe its X-Forwarded-For", false)
    .option("--idp <issuer,audience,jwks…>", "an identity provider; may be given again", collect)
    .option("--import <dir>", "operator.jwt and .nk, system.jwt and .nk, optionally space.jwt and .nk")
    .addHelpText(
      "after",
      "\nExamples:\n  mesh-authority init --space acme \\\n" +
        "    --idp https://login.acme.example,mesh,https://login.acme.example/jwks\n" +
        "  mesh-authority init --space acme --import ~/exported-by-nsc",
    );
  act<Options>(init, outcome, async (_, options, say) => {
    if (options.space === undefined) throw new AuthorityError("bad-request", "name the space with --space");
    const { settings, created } = await initSpace({
      stateDir: resolve(options.state),
      space: a(Space)(options.space),
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
      ...(options.idp === undefined ? {} : { pins: options.idp.map(pinOf) }),
      ...(options.import === undefined ? {} : { importDir: resolve(options.import) }),
    });
    const next = created
      ? "next: `mesh-authority up` for all on this machine, or nats-server, `serve` and `gateway` one by one"
      : "it was there already: nothing of it was changed";
    say.result({ settings, created }, `space ${settings.space} in ${resolve(options.state)}\n${next}`);
    return undefined;
  });
}

const collect = (text: string, before: readonly string[] = []): string[] => [...before, text];

function pinOf(text: string) {
  const [issuer, audience, jwksUri, ...rest] = text.split(",");
  if (!issuer || !audience || !jwksUri || rest.length > 0) {
    throw new AuthorityError("bad-request", "--idp takes issuer,audience,jwks");
  }
  return { url: issuer, issuer, audience, jwksUri };
}
