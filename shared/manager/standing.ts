/**
 * The standing credentials of a manager, and its connections under them. A connection outlives the credential it was
 * opened with: when the broker ends it with that, it comes again under the one of then.
 *
 * ```ts
 * const standing = new StandingCredentials({ servers, keys, ports });
 * standing.hold(prepared.credentials);
 * const connection = await standing.connect("supervisor");
 * void standing.renewing(async () => orThrow(await ask.managerRenewStanding(request())).credentials);
 * ```
 */
import type { NatsConnection } from "@nats-io/nats-core";
import type { KeyPair } from "../credentials/nkeys.ts";
import type { Identity } from "../credentials/roles.ts";
import { internal, isAuthorityError } from "../errors.ts";
import { LIFE, PEER_WAIT } from "../limits.ts";
import { connectUser } from "../nats/connect.ts";
import { jitter, type Ports } from "../ports.ts";

/** As the authority answers; `exp` in seconds. */
type Signed = { readonly jwt: string; readonly exp: number };
export type Standing = Readonly<Partial<Record<Identity, Signed>>>;

export interface StandingOptions {
  readonly servers: string | string[];
  readonly keys: Readonly<Record<Identity, KeyPair>>;
  readonly ports: Ports;
}

export class StandingCredentials {
  readonly #options: StandingOptions;
  readonly #held = new Map<Identity, Signed>();
  readonly #connections = new Set<NatsConnection>();
  readonly #closing = new AbortController();
  #heldSince: number;

  constructor(options: StandingOptions) {
    this.#options = options;
    this.#heldSince = options.ports.now();
  }

  /** In place of those that were held. */
  hold(credentials: Standing): void {
    this.#heldSince = this.#options.ports.now();
    for (const [identity, signed] of Object.entries(credentials)) this.#held.set(identity as Identity, signed);
  }

  async connect(identity: Identity): Promise<NatsConnection> {
    const { servers, keys } = this.#options;
    const user = () => ({ jwt: this.#jwt(identity), key: keys[identity] });
    return this.#keep(await connectUser({ servers, name: identity, user, reconnect: true }));
  }

  /** Under a credential that is not renewed: the connection ends with it. */
  async connectOnce(name: string, { jwt }: Signed, key: KeyPair): Promise<NatsConnection> {
    const { servers } = this.#options;
    return this.#keep(await connectUser({ servers, name, user: () => ({ jwt, key }), reconnect: false }));
  }

  /**
   * At 75 % of the shortest life holds what `renew` gives, again and again, until `close`. What is unavailable is asked
   * for again; any other refusal is thrown, since repeating it does not help.
   */
  async renewing(renew: () => Promise<Standing>): Promise<void> {
    const { ports } = this.#options;
    const { signal } = this.#closing;
    for (let tries = 0; !signal.aborted; ) {
      const ms = tries === 0 ? this.#dueAt() - ports.now() : jitter(ports, PEER_WAIT, tries);
      const due = await ports.sleep(Math.max(0, ms), signal).then(
        () => true,
        () => false,
      );
      if (!due) return;
      try {
        this.hold(await renew());
        tries = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (!isAuthorityError(error, "unavailable")) throw error;
        tries += 1;
      }
    }
  }

  /** What the work comes to; where it fails, no connection of these stays open. */
  async orClose<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#connections].map((connection) => connection.close()));
  }

  /** ms */
  #dueAt(): number {
    const end = Math.min(...[...this.#held.values()].map(({ exp }) => exp * 1_000));
    return this.#heldSince + LIFE.renewAt * (end - this.#heldSince);
  }

  #jwt(identity: Identity): string {
    const held = this.#held.get(identity);
    if (!held) throw internal(`no credential for the ${identity}`);
    return held.jwt;
  }

  #keep(connection: NatsConnection): NatsConnection {
    this.#connections.add(connection);
    void connection.closed().then(() => this.#connections.delete(connection));
    return connection;
  }
}
