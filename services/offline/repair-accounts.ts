/**
 * Signs the accounts of a space anew where they do not say what the authority needs (identity §1.4): limits written out,
 * whom the broker admits to the callout account itself, where the callout may place users. All else that they say stays.
 * In force once the broker reloads.
 */
import { canonicalText } from "../../shared/canonical.ts";
import { ACCOUNT_LIMITS, JETSTREAM_LIMITS, type NatsBody } from "../../shared/credentials/jwt.ts";
import type { Ports } from "../../shared/ports.ts";
import { storeIn } from "../../shared/secrets/directory.ts";
import { openFolder } from "../../shared/secrets/folder.ts";
import { loadSecret, SECRET } from "../../shared/secrets/keys.ts";
import { spaceFiles } from "../../shared/secrets/settings.ts";
import type { Space } from "../../shared/tokens.ts";
import { authUsers, ownSigningKeys, signingKeys } from "./accounts.ts";
import { writeBrokerConf } from "./broker-conf.ts";
import { amendAccount, loadAccount } from "./jwts.ts";
import { loadRoot, signerOf } from "./root.ts";

export interface RepairAccountsOptions {
  readonly stateDir: string;
  readonly space: Space;
  /** Takes signing keys that are not ours out of the space account: users whom they signed are refused from then on. */
  readonly dropSigningKeys: boolean;
  readonly ports: Ports;
}

/** The names of the accounts that were signed anew. */
export async function repairAccounts(options: RepairAccountsOptions): Promise<{ readonly repaired: string[] }> {
  const { space, dropSigningKeys, ports } = options;
  const folder = await openFolder(options.stateDir, { ports });
  const store = await storeIn(folder);
  await spaceFiles(folder, space).settings(store.identity);
  const root = await loadRoot(folder);
  const serviceKeys = await loadSecret(store, space, SECRET.serviceKeys);
  const calloutKeys = await loadSecret(store, space, SECRET.calloutKeys);
  const publicKeys = await loadSecret(store, space, SECRET.publicKeys);
  const { accounts } = publicKeys;
  const ours = ownSigningKeys(serviceKeys);

  const wanted: Record<string, [pub: string, change: (nats: NatsBody) => NatsBody]> = {
    system: [root.system.pub, (nats) => limited(nats, "unset")],
    space: [
      accounts.space,
      (nats) => ({
        ...limited(nats, "unlimited"),
        ...(dropSigningKeys
          ? { signing_keys: signingKeys(nats).filter((key) => ours.some((own) => own === key)) }
          : {}),
      }),
    ],
    authority: [accounts.authority, (nats) => limited(nats, "unlimited")],
    callout: [
      accounts.callout,
      (nats) => ({
        ...limited(nats, "none"),
        authorization: {
          auth_users: authUsers(publicKeys),
          allowed_accounts: [accounts.space],
          xkey: calloutKeys.xkey.pub,
        },
      }),
    ],
  };
  const repaired: string[] = [];
  for (const [name, [pub, change]] of Object.entries(wanted)) {
    const { nats } = (await loadAccount(folder, pub)).claims;
    if (canonicalText(change(nats)) === canonicalText(nats)) continue;
    await amendAccount(folder, pub, signerOf(root.operator), ports, change);
    repaired.push(name);
  }
  await writeBrokerConf(folder, store);
  return { repaired };
}

/** What is left out or 0 is none at all to the broker; a limit that somebody chose stays. */
function limited(nats: NatsBody, jetstream: keyof typeof JETSTREAM_LIMITS): NatsBody {
  const chosen = Object.entries(Object(nats.limits)).filter(([, value]) => value !== 0);
  const ofStreams = ([name]: [string, unknown]): boolean => name in JETSTREAM_LIMITS.unlimited;
  const plain = chosen.filter((limit) => !ofStreams(limit));
  const streams = chosen.filter(ofStreams);
  const has = streams.some(([name]) => name === "mem_storage" || name === "disk_storage");
  const kept = jetstream === "unlimited" && has;
  return {
    ...nats,
    limits: {
      ...ACCOUNT_LIMITS,
      ...Object.fromEntries(plain),
      ...(kept ? Object.fromEntries(streams) : JETSTREAM_LIMITS[jetstream]),
    },
  };
}
