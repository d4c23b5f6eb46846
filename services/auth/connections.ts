/** The connections of `auth` beside its serve connection, signed for itself (state §6 `work`, `store`, `scan`). */
import type { NatsConnection } from "@nats-io/nats-core";
import { AuthorityClient } from "../../shared/client.ts";
import type { KeyPair } from "../../shared/credentials/nkeys.ts";
import { SELF_RENEWED_MS, SelfSigned } from "../../shared/credentials/self-signed.ts";
import { unavailable } from "../../shared/errors.ts";
import { CUSTODIAN } from "../../shared/limits.ts";
import { RenewedConnection } from "../../shared/nats/renewed.ts";
import { patiently } from "../../shared/patience.ts";
import { Store, type StoreOptions } from "../../shared/store/store.ts";
import type { StreamAccount } from "../../shared/store/streams.ts";
import { type AccountNkey, Actor, type Uid } from "../../shared/tokens.ts";
import type { ServiceDeps } from "../service.ts";
import { LOCAL } from "./context.ts";
import { ScanConnection } from "./scan-connection.ts";

export interface Account {
  readonly account: AccountNkey;
  readonly signer: KeyPair;
}

export interface AuthConnections {
  readonly authority: RenewedConnection;
  readonly space: RenewedConnection;
  readonly peerInbox: string;
  readonly scans: { readonly authority: ScanConnection; readonly space: ScanConnection };
  /** Another `store` connection, for what is left to be written once the first is closed. */
  reopenStore(): Promise<NatsConnection>;
}

export async function openConnections(
  deps: ServiceDeps,
  accounts: { readonly authority: Account; readonly space: Account },
  uid: Uid,
  signal: AbortSignal,
): Promise<AuthConnections> {
  const { space, owned, ports, log } = deps;
  const own = (profile: "store" | "work", { account, signer }: Account) =>
    new SelfSigned({ space, service: "auth", uid, profile, account, signer, ports });
  const renewed = (label: "store:auth" | "work:auth", user: SelfSigned) =>
    patiently(deps, () =>
      RenewedConnection.open({
        owned,
        label,
        user: () => user.user(),
        everyMs: SELF_RENEWED_MS,
        // The longest question to a peer.
        lingerMs: CUSTODIAN.askEvictMs,
        ports,
        log,
        signal,
      }),
    );
  const work = own("work", accounts.space);
  const store = own("store", accounts.authority);
  const scan = (which: "authority" | "space") =>
    patiently(deps, () => ScanConnection.open({ deps, which, ...accounts[which], uid, signal }));
  return {
    authority: await renewed("store:auth", store),
    space: await renewed("work:auth", work),
    peerInbox: `_INBOX_${work.user().key.public}`,
    scans: { authority: await scan("authority"), space: await scan("space") },
    reopenStore: () =>
      owned.open("store:auth", { name: "store:auth", user: () => store.user(), reconnect: false, log }),
  };
}

/** Over whichever connections are in use at the time. */
export function storeOver(
  { authority, space, scans }: AuthConnections,
  options: Pick<StoreOptions, "space" | "ports">,
) {
  return new Store({
    ...options,
    connections: { authority: () => authority.current(), space: () => space.current() },
    scanConnections: { authority: () => scans.authority.current(), space: () => scans.space.current() },
  });
}

/** Asks `exchange` and the custodian, as `local.auth`. */
export function peerClient(
  { space, ports }: Pick<ServiceDeps, "space" | "ports">,
  { space: connection, peerInbox }: AuthConnections,
  uid: Uid,
): AuthorityClient {
  return new AuthorityClient({
    connection: () => connection.current(),
    space,
    caller: { owner: LOCAL, actor: Actor.parse("auth"), uid },
    inboxPrefix: peerInbox,
    name: "auth",
    ports,
  });
}

/** Throws `unavailable` while it is being opened. */
export function scanOf({ scans }: AuthConnections, of: StreamAccount): NatsConnection {
  const connection = scans[of].current();
  if (!connection) throw unavailable("the scan connection is being opened");
  return connection;
}
