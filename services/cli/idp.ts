/** `idp add|list|remove`: whose logins count (identity §2). */
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { systemPorts } from "../../shared/ports.ts";
import { fetchJson } from "../../shared/provider-keys.ts";
import { openFolder } from "../../shared/secrets/folder.ts";
import { ALGORITHMS, DEFAULT_ALGORITHMS, type IdpPin, type PinAlgorithm } from "../../shared/secrets/pins.ts";
import { addPin, readPins, removePin } from "../offline/pins.ts";
import { act, type Outcome } from "./action.ts";
import { table } from "./console.ts";
import { asWrongCommand, WrongCommand, whyOf } from "./failure.ts";
import { type Globals, placeOf } from "./operator.ts";
import { oneOf } from "./values.ts";

const RESTART = "now restart exchange, which reads this at its start";

interface AddOptions {
  readonly audience: string;
  readonly jwks?: string;
  readonly keys?: string;
  readonly algorithm?: readonly PinAlgorithm[];
  readonly url?: string;
  readonly replace: boolean;
}

export function idpCommands(program: Command, outcome: Outcome): void {
  const idp = program.command("idp").description("identity providers, and what is believed of them");

  const add = idp
    .command("add")
    .description("believe an identity provider")
    .argument("<issuer>", "as its tokens spell it, byte for byte")
    .requiredOption("--audience <id>", "that its tokens are for: the client id of the mesh there")
    .option("--jwks <url>", "where its keys are; default: what its openid-configuration says")
    .option("--keys <file>", "a JWK set with its keys instead, where it cannot be asked")
    .option(
      "--algorithm <list>",
      `of ${ALGORITHMS.join(", ")}; default: its openid-configuration, else EdDSA`,
      algorithms,
    )
    .option("--url <url>", "what clients are told to log in at; default: the issuer")
    .option("--replace", "change the pin of an issuer that is believed already", false)
    .addHelpText(
      "after",
      "\nExamples:\n  mesh-authority idp add https://accounts.acme.example --audience mesh-client\n" +
        "  mesh-authority idp add https://accounts.acme.example --audience mesh-client \\\n" +
        "    --jwks https://accounts.acme.example/jwks --algorithm RS256",
    );
  act<AddOptions>(add, outcome, async ([issuer], options, say) => {
    const place = await pinPlace(options);
    const pin = await pinOf(String(issuer), options);
    await addPin(place, pin, options.replace).catch(asWrongCommand);
    say.result(pin, `${listed([pin])}\n${RESTART}`);
    return undefined;
  });

  const list = idp
    .command("list")
    .description("show which identity providers are believed")
    .addHelpText("after", "\nExample:\n  mesh-authority idp list");
  act(list, outcome, async (_, options, say) => {
    const pins = await readPins(await pinPlace(options));
    say.result(pins, pins.length === 0 ? "none yet, so nobody can log in: `idp add` makes the first" : listed(pins));
    return undefined;
  });

  const remove = idp
    .command("remove")
    .description("believe an identity provider no more; whom it named comes in again only if it is added again")
    .argument("<issuer>", "as `idp list` shows it")
    .addHelpText("after", "\nExample:\n  mesh-authority idp remove https://accounts.acme.example");
  act(remove, outcome, async ([issuer], options, say) => {
    const rest = await removePin(await pinPlace(options), String(issuer));
    say.result(rest, `${listed(rest)}\n${RESTART}; bearers that stand on its logins end within 900 s`);
    return undefined;
  });
}

/** `issuer,audience,jwks` and perhaps algorithms, as `init --idp` takes it. */
export function pinOfText(text: string): IdpPin {
  const [issuer, audience, jwksUri, ...more] = text.split(",");
  if (!issuer || !audience || !jwksUri) {
    throw new WrongCommand(
      "--idp takes issuer,audience,jwks and, if it signs otherwise than with EdDSA, RS256 or ES256",
    );
  }
  return {
    url: issuer,
    issuer,
    audience,
    jwksUri,
    ...(more.length === 0 ? {} : { algorithms: algorithms(more.join()) }),
  };
}

async function pinPlace(globals: Globals) {
  const { stateDir, space } = await placeOf(globals);
  return { folder: await openFolder(stateDir), space };
}

async function pinOf(issuer: string, options: AddOptions): Promise<IdpPin> {
  const { audience, jwks, keys, algorithm, url = issuer } = options;
  if (jwks !== undefined && keys !== undefined) throw new WrongCommand("give either --jwks or --keys");
  const about = { url, issuer, audience };
  const named = algorithm === undefined ? {} : { algorithms: [...algorithm] };
  if (keys !== undefined) return { ...about, keys: await keysIn(keys), ...named };
  if (jwks !== undefined) return { ...about, jwksUri: jwks, ...named };
  const published = await openidConfiguration(issuer);
  return { ...about, ...published, ...named };
}

async function keysIn(file: string): Promise<NonNullable<IdpPin["keys"]>> {
  try {
    return JSON.parse(await readFile(file, "utf8")).keys; // judged like everything that is written
  } catch (error) {
    throw new WrongCommand(`--keys ${file} is no JWK set: ${whyOf(error)}`);
  }
}

/** What a provider says of itself; it must name itself as it was named here. */
async function openidConfiguration(issuer: string): Promise<{ jwksUri: string; algorithms: PinAlgorithm[] }> {
  const address = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const instead = "give --jwks and --algorithm";
  const said = await fetchJson(address, systemPorts).catch((error: unknown) => {
    throw new WrongCommand(`${address} tells nothing (${whyOf(error)}): ${instead}`);
  });
  const { issuer: itself, jwks_uri, id_token_signing_alg_values_supported: signs } = Object(said);
  if (itself !== issuer) throw new WrongCommand(`the provider there calls itself ${JSON.stringify(itself)}: name that`);
  if (typeof jwks_uri !== "string") throw new WrongCommand(`${address} names no jwks_uri: ${instead}`);
  const known = ALGORITHMS.filter((alg) => Array.isArray(signs) && signs.includes(alg));
  if (known.length === 0) throw new WrongCommand(`${issuer} signs with none of ${ALGORITHMS.join(", ")}`);
  return { jwksUri: jwks_uri, algorithms: known };
}

function algorithms(text: string): PinAlgorithm[] {
  return text.split(",").map((item) => oneOf(ALGORITHMS)(item.trim()));
}

const listed = (pins: readonly IdpPin[]): string =>
  table(
    ["ISSUER", "AUDIENCE", "ALGORITHMS", "KEYS"],
    pins.map(({ issuer, audience, algorithms = DEFAULT_ALGORITHMS, jwksUri, keys }) => [
      issuer,
      audience,
      algorithms.join(","),
      jwksUri ?? `${keys?.length ?? 0} in the pin`,
    ]),
  );
