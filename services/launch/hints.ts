/** What to try once everything is up, as commands that can be pasted. */
import { relative } from "node:path";
import { keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { directoryStore } from "../../shared/secrets/directory.ts";
import { credsFile, loadCreds, viewKeys } from "../../shared/secrets/keys.ts";
import { secretKey } from "../../shared/secrets/store.ts";
import type { Plan } from "./processes.ts";

export interface Hint {
  readonly command: string;
  readonly shows: string;
}

export async function hintsFor(plan: Plan): Promise<Hint[]> {
  return [...(await natsHints(plan)), ...curlHints(plan), ...commandHints(plan)];
}

/** The operator may receive under its own inbox alone, so the tool has to be told. */
async function natsHints({ space, stateDir, settings }: Plan): Promise<Hint[]> {
  const store = await directoryStore(stateDir, viewKeys(space, "operator"));
  const tool = async (name: "operator" | "operator_callout"): Promise<string> => {
    const { public: nkey } = keyPairFromSeed((await loadCreds(store, space, name)).seed);
    const creds = `${shown(stateDir)}/${secretKey(space, credsFile(name))}`;
    return `nats -s ${settings.broker.advertised} --creds ${creds} --inbox-prefix _INBOX_${nkey} micro`;
  };
  const [inSpace, inCallout] = [await tool("operator"), await tool("operator_callout")];
  return [
    { command: `${inSpace} ls`, shows: "the services of the space" },
    { command: `${inSpace} info auth`, shows: "every operation of auth, with its contract" },
    { command: `${inSpace} stats auth`, shows: "what was asked, refused, and how long it took" },
    { command: `${inCallout} ls`, shows: "the auth callout, in an account of its own" },
  ];
}

function curlHints({ settings, idpPort }: Plan): Hint[] {
  const { publicUrl } = settings.gateway;
  if (publicUrl === undefined) return [];
  const discovery = { command: `curl -s ${publicUrl}/.well-known/cotal-mesh`, shows: "what a client has to know" };
  if (idpPort === undefined) return [discovery];
  const json = "-H 'content-type: application/json'";
  const login = `$(curl -s ${json} -d '{"sub":"bob"}' http://127.0.0.1:${idpPort}/token | sed 's/.*"id_token":"\\([^"]*\\)".*/\\1/')`;
  return [
    discovery,
    {
      command: `curl -s ${json} -d '{"idpToken":"'"${login}"'"}' ${publicUrl}/exchange`,
      shows: "bob logs in; nobody has granted him anything yet, so he learns his owner name",
    },
  ];
}

function commandHints({ stateDir }: Plan): Hint[] {
  const state = shown(stateDir) === "state" ? "" : ` --state ${shown(stateDir)}`;
  return [{ command: `npx mesh-authority actor list${state}`, shows: "who may do what" }];
}

const shown = (path: string): string => {
  const short = relative(process.cwd(), path);
  return short === "" ? "." : short.startsWith("..") ? path : short;
};
