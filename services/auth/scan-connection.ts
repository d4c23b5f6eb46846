/**
 * The connection for scans and watches of one account: signed for itself with a fresh nkey, without expiry, never
 * reconnecting (state §6 `scan`). Where it stands can be proven: its tuple is what a plane claim names.
 */
import type { NatsConnection } from "@nats-io/nats-core";
import { compilePermissions } from "../../shared/credentials/compile.ts";
import type { KeyPair } from "../../shared/credentials/nkeys.ts";
import { createKeyPair } from "../../shared/credentials/nkeys.ts";
import { signUser } from "../../shared/credentials/sign.ts";
import { textOf } from "../../shared/errors.ts";
import { PEER_WAIT } from "../../shared/limits.ts";
import { type Tuple, tupleOf } from "../../shared/nats/connect.ts";
import { jitter } from "../../shared/ports.ts";
import { type AccountNkey, Actor, Owner, type Uid, UserNkey } from "../../shared/tokens.ts";
import type { ServiceDeps } from "../service.ts";

export interface ScanOptions {
  readonly deps: Pick<ServiceDeps, "space" | "settings" | "owned" | "ports" | "log">;
  readonly which: "authority" | "space";
  readonly account: AccountNkey;
  readonly signer: KeyPair;
  readonly uid: Uid;
  /** When it aborts no further connection is opened; whoever owns the connections closes this one. */
  readonly signal: AbortSignal;
}

interface Open {
  readonly connection: NatsConnection;
  readonly tuple: Tuple;
}

export class ScanConnection {
  readonly #options: ScanOptions;
  readonly #stopping = new AbortController();
  readonly #signal: AbortSignal;
  #open: Open | undefined;
  #ended: (() => void)[] = [];

  private constructor(options: ScanOptions) {
    this.#options = options;
    this.#signal = AbortSignal.any([options.signal, this.#stopping.signal]);
  }

  static async open(options: ScanOptions): Promise<ScanConnection> {
    const scan = new ScanConnection(options);
    await scan.#connect();
    return scan;
  }

  current(): NatsConnection | undefined {
    return this.#open?.connection;
  }

  /** Of the connection as it is now; absent while it is being opened anew. */
  tuple(): Tuple | undefined {
    return this.#open?.tuple;
  }

  /** Called each time the connection has ended, before the next one is opened. */
  onEnded(listener: () => void): void {
    this.#ended.push(listener);
  }

  /** Ends this connection without another one after it. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#open?.connection.close();
  }

  async #connect(): Promise<void> {
    const { deps, which } = this.#options;
    const key = createKeyPair("user", deps.ports);
    const jwt = this.#sign(UserNkey.parse(key.public));
    const label = `scan:${which}` as const;
    const connection = await deps.owned.open(label, {
      name: label,
      user: () => ({ jwt, key }),
      reconnect: false,
      log: deps.log,
    });
    if (this.#signal.aborted) return connection.close(); // begun before the end, and on nobody's list
    this.#open = { connection, tuple: tupleOf(connection, key.public) };
    void connection.closed().then(() => this.#again());
  }

  async #again(): Promise<void> {
    const { deps, which } = this.#options;
    this.#open = undefined;
    for (const listener of this.#ended) listener();
    for (let tries = 0; !this.#signal.aborted; tries += 1) {
      try {
        await this.#connect();
        return;
      } catch (error) {
        deps.log.warn({ connection: `scan:${which}`, err: textOf(error) }, "not connected");
        await deps.ports.sleep(jitter(deps.ports, PEER_WAIT, tries), this.#signal).catch(() => {});
      }
    }
  }

  #sign(key: UserNkey): string {
    const { deps, which, account, signer, uid } = this.#options;
    const holder = { owner: Owner.parse("local"), actor: Actor.parse("auth"), uid };
    const { streams } = deps.settings;
    const permissions = compilePermissions("scan", {
      space: deps.space,
      ...holder,
      inbox: key,
      account: which,
      ...(streams ? { streams } : {}),
    });
    const issuedAtS = Math.floor(deps.ports.now() / 1_000);
    return signUser({ key, name: "scan", account, signer, permissions, holder, issuedAtS }, deps.ports);
  }
}
