/** The callout's three connections: where it serves, where it reads, where it records (identity §9.1). */
import type { NatsConnection } from "@nats-io/transport-node";
import type { Creds } from "../../shared/credentials/creds.ts";
import { type KeyPair, keyPairFromSeed } from "../../shared/credentials/nkeys.ts";
import { SELF_RENEWED_MS, SelfSigned } from "../../shared/credentials/self-signed.ts";
import { CALLOUT } from "../../shared/limits.ts";
import { RenewedConnection } from "../../shared/nats/renewed.ts";
import { patiently } from "../../shared/patience.ts";
import type { AccountNkey, Uid } from "../../shared/tokens.ts";
import type { ServiceDeps } from "../service.ts";

export type CalloutDeps = Pick<
  ServiceDeps,
  "space" | "settings" | "secrets" | "ports" | "log" | "owned" | "signal" | "version"
>;

/** An account and a signing key of it. */
export interface Signer {
  readonly account: AccountNkey;
  readonly signing: KeyPair;
}

export interface CalloutConnections {
  /** In the callout account, on the user that `init` made. */
  readonly serving: NatsConnection;
  /** In the authority account, as `local.callout`. */
  readonly authority: RenewedConnection;
  /** In the space account, as `local.callout`. */
  readonly space: RenewedConnection;
}

export async function openConnections(
  deps: CalloutDeps,
  signers: { readonly authority: Signer; readonly space: Signer },
  creds: Creds,
  instanceId: Uid,
  signal: AbortSignal,
): Promise<CalloutConnections> {
  const { space, owned, ports, log } = deps;
  const open = (label: "store:callout" | "work:callout", profile: "store" | "work", { account, signing }: Signer) => {
    const own = new SelfSigned({
      space,
      service: "callout",
      uid: instanceId,
      profile,
      account,
      signer: signing,
      ports,
    });
    const everyMs = SELF_RENEWED_MS;
    const renewed = { owned, label, user: () => own.user(), everyMs, lingerMs: CALLOUT.answerMs, ports, log, signal };
    return patiently(deps, () => RenewedConnection.open(renewed));
  };
  const authority = await open("store:callout", "store", signers.authority);
  const work = await open("work:callout", "work", signers.space);
  const user = { jwt: creds.jwt, key: keyPairFromSeed(creds.seed) };
  const serving = await patiently(deps, () =>
    owned.open("callout", { name: "callout", user: () => user, reconnect: true, log }),
  );
  return { serving, authority, space: work };
}
