/** What to try once everything is up, as commands that can be pasted. */
import { relative } from "node:path";
import { credsFile } from "../../shared/secrets/keys.ts";
import { secretKey } from "../../shared/secrets/store.ts";
import type { Plan } from "./processes.ts";

export interface Hint {
  readonly command: string;
  readonly shows: string;
}

export function hintsFor(plan: Plan): Hint[] {
  return [...natsHints(plan), ...curlHints(plan), ...commandHints(plan)];
}

function natsHints({ space, stateDir, settings }: Plan): Hint[] {
  const as = (name: "operator" | "operator_callout"): string =>
    `nats -s ${settings.broker.advertised} --creds ${shown(stateDir)}/${secretKey(space, credsFile(name))} micro`;
  return [
    { command: `${as("operator")} ls`, shows: "the services of the space" },
    { command: `${as("operator")} info auth`, shows: "every operation of auth, with its contract" },
    { command: `${as("operator")} stats auth`, shows: "what was asked, refused, and how long it took" },
    { command: `${as("operator_callout")} ls`, shows: "the auth callout, in an account of its own" },
  ];
}

function curlHints({ settings, idpPort }: Plan): Hint[] {
  const { publicUrl } = settings.gateway;
  if (publicUrl === undefined) return [];
  const discovery = { command: `curl -s ${publicUrl}/.well-known/cotal-mesh`, shows: "what a client has to know" };
  if (idpPort === undefined) return [discovery];
  const json = "-H 'content-type: application/json'";
  const idToken = 'sed \'s/.*"id_token":"\\([^"]*\\)".*/\\1/\'';
  return [
    discovery,
    {
      command: `TOKEN=$(curl -s ${json} -d '{"sub":"bob"}' http://127.0.0.1:${idpPort}/token | ${idToken})`,
      shows: "bob logs in at the development identity provider",
    },
    {
      command: `curl -s ${json} -d "{\\"actor\\":\\"cli\\",\\"idpToken\\":\\"$TOKEN\\"}" ${publicUrl}/exchange`,
      shows: "nobody has granted bob anything, so he learns his owner name and nothing else",
    },
  ];
}

/** Naming the space, since the folder may come to hold others. */
function commandHints({ space, stateDir }: Plan): Hint[] {
  const state = shown(stateDir) === "state" ? "" : ` --state ${shown(stateDir)}`;
  return [{ command: `npx mesh-authority actor list --space ${space}${state}`, shows: "who may do what" }];
}

const shown = (path: string): string => {
  const short = relative(process.cwd(), path);
  return short === "" ? "." : short.startsWith("..") ? path : short;
};
