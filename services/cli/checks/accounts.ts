/** Whether the accounts say what they must, and who is admitted without being asked about (identity §1.4). */

import { parseCreds } from "../../../shared/credentials/creds.ts";
import { decodeJwt, type NatsBody } from "../../../shared/credentials/jwt.ts";
import { CALLOUT_USERS } from "../../../shared/credentials/users.ts";
import type { Folder } from "../../../shared/secrets/folder.ts";
import {
  type CalloutKeys,
  loadSecret,
  type PublicKeys,
  SECRET,
  type ServiceKeys,
} from "../../../shared/secrets/keys.ts";
import { spaceFiles } from "../../../shared/secrets/settings.ts";
import { limitedTo, type SecretStore, secretKey } from "../../../shared/secrets/store.ts";
import type { Space } from "../../../shared/tokens.ts";
import { ownSigningKeys, signingKeys } from "../../offline/accounts.ts";
import { loadAccount, loadOperator } from "../../offline/jwts.ts";
import { bad, type Finding, good, RELOAD } from "./finding.ts";

/** What an account must say; to the broker a limit that is left out is 0. */
const LIMITS = ["subs", "data", "payload", "imports", "exports", "conn", "leaf"] as const;
const REPAIR = `run repair-accounts, then ${RELOAD}`;
const ANOTHER = "remove sentinel.creds, run init again with this --space, then restart exchange and auth";
const JETSTREAM = ["mem_storage", "disk_storage"] as const;

export async function accountFindings(folder: Folder, whole: SecretStore, space: Space): Promise<Finding[]> {
  const keys = ["public.json", "service-keys.json", "callout.json"].map((file) => secretKey(space, file));
  const store = limitedTo(whole, keys);
  const publicKeys = await loadSecret(store, space, SECRET.publicKeys);
  const serviceKeys = await loadSecret(store, space, SECRET.serviceKeys);
  const calloutKeys = await loadSecret(store, space, SECRET.calloutKeys);
  const operator = await loadOperator(folder);
  const conf = new TextDecoder().decode((await folder.read("broker/broker.conf", "public")) ?? new Uint8Array());

  const findings: Finding[] = [];
  const accounts = { ...publicKeys.accounts, system: String(operator.claims.nats.system_account) };
  const bodies = new Map<string, NatsBody>();
  for (const [name, pub] of Object.entries(accounts)) {
    const { claims, text } = await loadAccount(folder, pub);
    bodies.set(name, claims.nats);
    findings.push(...limitFindings(name, claims.nats));
    if (!conf.includes(text)) {
      findings.push(
        bad("broker.conf", `has another JWT of account ${name}`, `run init again with this --space, then ${RELOAD}`),
      );
    }
  }
  findings.push(...calloutFindings(bodies.get("callout"), publicKeys, calloutKeys));
  findings.push(...bypassFindings(bodies.get("space"), publicKeys, serviceKeys));
  if (await spaceFiles(folder, space).hasSentinel()) {
    findings.push(await sentinelFinding(folder, space, publicKeys, bodies.get("callout")));
  }
  return findings;
}

function limitFindings(name: string, nats: NatsBody): Finding[] {
  const limits = Object(nats.limits) as Record<string, unknown>;
  const missing = LIMITS.filter((limit) => typeof limits[limit] !== "number" || limits[limit] === 0);
  const check = `limits of ${name}`;
  const findings: Finding[] = [];
  if (missing.length > 0)
    findings.push(bad(check, `${missing.join(", ")} left out or 0: to the broker that is none at all`, REPAIR));
  const jetStream = JETSTREAM.some((limit) => limits[limit] !== undefined && limits[limit] !== 0);
  if (name === "system" && jetStream) {
    findings.push(bad(check, "has JetStream limits, with which the broker does not start", REPAIR));
  }
  if ((name === "space" || name === "authority") && !jetStream) {
    findings.push(bad(check, "has no JetStream", REPAIR));
  }
  return findings.length > 0 ? findings : [good(check, "written out")];
}

function calloutFindings(nats: NatsBody | undefined, { accounts, users }: PublicKeys, keys: CalloutKeys): Finding[] {
  const { auth_users, allowed_accounts, xkey } = Object(nats?.authorization) as Record<string, unknown>;
  const listed = textsOf(auth_users);
  const wanted = CALLOUT_USERS.map((name) => users[name]);
  const missing = CALLOUT_USERS.filter((name) => !listed.includes(users[name]));
  const foreign = listed.filter((nkey) => !wanted.some((user) => user === nkey));
  const allowed = textsOf(allowed_accounts);
  const own = decodeJwt(parseCreds(keys.calloutCreds).jwt).sub;
  return [
    missing.length === 0 && own === users.callout
      ? good("callout user", "listed, so that the broker admits it itself")
      : bad(
          "callout user",
          `${missing.join(", ") || "callout.json"} is not the listed one: sent to the callout itself`,
          own === users.callout ? REPAIR : `run rotate creds callout, then ${RELOAD} and restart callout`,
        ),
    foreign.length === 0
      ? good("callout bypass", "no other user is listed")
      : bad("callout bypass", `${foreign.join(", ")} is admitted to the callout account unasked`, REPAIR),
    allowed.length === 1 && allowed[0] === accounts.space
      ? good("allowed accounts", "the space alone")
      : bad("allowed accounts", `the callout may place users in ${allowed.join(", ") || "no account"}`, REPAIR),
    xkey === keys.xkey.pub
      ? good("callout encryption", "the broker seals to the callout's key")
      : bad("callout encryption", "the account names another curve key, or none", REPAIR),
  ];
}

/** Whoever holds a signing key of the space signs users whom the broker admits without asking. */
function bypassFindings(nats: NatsBody | undefined, { accounts }: PublicKeys, keys: ServiceKeys): Finding[] {
  const ours = ownSigningKeys(keys);
  const foreign = keysOf(nats).filter((key) => !ours.includes(key));
  const check = "who bypasses the callout";
  if (foreign.length === 0)
    return [good(check, `whoever holds the root seed of ${accounts.space}, and auth by design`)];
  return [
    bad(
      check,
      `holders of ${foreign.join(", ")} too`,
      `if they should not: run repair-accounts --drop-signing-keys, then ${RELOAD}`,
    ),
  ];
}

async function sentinelFinding(
  folder: Folder,
  space: Space,
  { accounts }: PublicKeys,
  callout: NatsBody | undefined,
): Promise<Finding> {
  const { jwt } = await spaceFiles(folder, space).sentinel();
  const { sub, iss, nats } = decodeJwt(jwt);
  const check = "sentinel";
  const listed = textsOf(Object(callout?.authorization).auth_users).includes(sub);
  const { pub, sub: subscribe } = Object(nats) as Record<string, { allow?: unknown[]; deny?: unknown[] } | undefined>;
  const closed = [pub, subscribe].every((rules) => rules?.deny?.includes(">") && !rules.allow?.length);
  if (nats.issuer_account !== accounts.callout) return bad(check, "is of another account", ANOTHER);
  if (listed) return bad(check, "is admitted without the callout", REPAIR);
  if (![accounts.callout, ...keysOf(callout)].includes(iss))
    return bad(check, "is signed by a key that the account has no more", ANOTHER);
  return closed
    ? good(check, "may do nothing, and is sent to the callout")
    : bad(check, "may do something by itself", ANOTHER);
}

/** The signing keys of an account, scoped ones too. */
const keysOf = (nats: NatsBody | undefined): string[] =>
  (nats ? signingKeys(nats) : []).map((key) => (typeof key === "string" ? key : String(Object(key).key)));

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
