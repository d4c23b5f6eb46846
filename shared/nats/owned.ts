/** Every connection of a process is opened here, so that none is left open (lifecycles §8.3). */
import type { NatsConnection } from "@nats-io/transport-node";
import { AuthorityError, textOf, unavailable } from "../errors.ts";
import { CONNECTION } from "../limits.ts";
import type { Ports } from "../ports.ts";
import { type ConnectUserOptions, connectUser, type Tuple, tupleOf } from "./connect.ts";
import { proveControlLine } from "./control-line.ts";

type ServiceName = "auth" | "exchange" | "callout" | "custodian";

/** What a connection is for. */
export type ConnectionLabel =
  | "serve:auth"
  | `work:${ServiceName}`
  | `store:${Exclude<ServiceName, "custodian">}`
  | "scan:space"
  | "scan:authority"
  | "callout"
  | "system"
  | `gateway:${"public" | "loopback"}`;

export interface OwnedConnection {
  readonly label: ConnectionLabel;
  /** Of the socket in use; absent if the server named none. */
  readonly tuple?: Tuple;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly ended: boolean;
}

/** One step of an ordered close. */
export interface CloseStep {
  readonly label: string;
  run(): Promise<void>;
}

/** What failed in a close, and why (`cause`). */
export class CloseFailure extends AuthorityError {
  readonly connection: string;

  constructor(connection: string, cause: unknown) {
    super("internal", "internal error", { reason: `close ${connection}: ${textOf(cause)}`, cause });
    this.name = "CloseFailure";
    this.connection = connection;
  }
}

interface Entry {
  readonly label: ConnectionLabel;
  readonly connection: NatsConnection;
  readonly userNkey: string;
  readonly openedAt: number;
  connected: boolean;
  ended: boolean;
}

type OpenOptions = Omit<ConnectUserOptions, "servers" | "tlsRequired">;

export class OwnedConnections {
  readonly #target: Pick<ConnectUserOptions, "servers" | "tlsRequired">;
  readonly #ports: Ports;
  /** Server ids of brokers that take lines as long as ours. */
  readonly #proven = new Set<string>();
  #entries: Entry[] = [];
  #sealed = false;

  constructor(target: Pick<ConnectUserOptions, "servers" | "tlsRequired">, ports: Ports) {
    this.#target = target;
    this.#ports = ports;
  }

  /**
   * Opens a connection and owns it until it ends. Ended ones of the same label leave the list. `failed-precondition`
   * where the broker takes no lines as long as ours.
   */
  async open(label: ConnectionLabel, options: OpenOptions): Promise<NatsConnection> {
    this.#refuseIfSealed(label);
    const connection = await this.#connect(options);
    const entry: Entry = {
      label,
      connection,
      userNkey: options.user().key.public,
      openedAt: this.#ports.now(),
      connected: true,
      ended: false,
    };
    this.#entries = [...this.#entries.filter((other) => other.label !== label || !other.ended), entry];
    void connection.closed().then(() => {
      entry.ended = true;
    });
    void follow(entry);
    if (this.#sealed) await connection.close(); // the close began while this one was being opened
    this.#refuseIfSealed(label);
    return connection;
  }

  /** A detached copy. */
  list(): OwnedConnection[] {
    return this.#entries.map(({ label, connection, userNkey, openedAt, ended }) => {
      const tuple = connection.info && tupleOf(connection, userNkey);
      return { label, ...(tuple ? { tuple } : {}), openedAt, ended };
    });
  }

  /** From here on nothing is opened: `open` rejects with `unavailable`. */
  seal(): void {
    this.#sealed = true;
  }

  /**
   * The steps that close what is open now, in the order of the prefixes given (`work:` stands for every work connection).
   * A repeat after a failure gives what is left.
   */
  closeSteps(...prefixes: string[]): CloseStep[] {
    return prefixes.flatMap((prefix) =>
      this.#entries
        .filter((entry) => !entry.ended && entry.label.startsWith(prefix))
        .map((entry) => ({ label: entry.label, run: () => this.#close(entry) })),
    );
  }

  /** Resolves when every connection opened so far has ended; never rejects. */
  async ended(): Promise<void> {
    await Promise.all(this.#entries.map((entry) => entry.connection.closed()));
  }

  /** The first time at each broker with a look at what it takes. */
  async #connect(options: OpenOptions): Promise<NatsConnection> {
    const connection = await connectUser({ ...this.#target, ...options });
    const serverId = connection.info?.server_id ?? "";
    if (this.#proven.has(serverId)) return connection;
    try {
      await proveControlLine(connection, options.inboxPrefix ?? `_INBOX_${options.user().key.public}`);
    } catch (error) {
      await connection.close();
      throw error;
    }
    this.#proven.add(serverId);
    return connection;
  }

  #refuseIfSealed(label: ConnectionLabel): void {
    if (this.#sealed) throw unavailable(`connection ${label}: the process is closing`);
  }

  /** Hands over what is buffered, within a bound, then closes whatever came of that. Without a broker there is nothing to wait for. */
  async #close(entry: Entry): Promise<void> {
    const { connection } = entry;
    if (connection.isClosed()) return;
    try {
      if (entry.connected && !connection.isDraining()) await this.#drain(connection);
    } finally {
      await connection.close();
      entry.ended = true;
    }
  }

  async #drain(connection: NatsConnection): Promise<void> {
    const stop = new AbortController();
    const late = this.#ports.sleep(CONNECTION.drainMs, stop.signal).then(
      () => "late",
      () => undefined,
    );
    const drained = connection.drain();
    drained.catch(() => {}); // whoever loses the race is nobody's rejection
    try {
      if ((await Promise.race([drained, late])) === "late") throw unavailable("did not drain in time");
    } finally {
      stop.abort();
    }
  }
}

/** Runs every step in order, even after a failure; failures come together as one `AggregateError`. */
export async function runCloseSteps(steps: readonly CloseStep[]): Promise<void> {
  const failures: CloseFailure[] = [];
  for (const { label, run } of steps) {
    try {
      await run();
    } catch (cause) {
      failures.push(new CloseFailure(label, cause));
    }
  }
  if (failures.length === 0) return;
  const labels = failures.map(({ connection }) => connection).join(", ");
  throw new AggregateError(failures, `close: ${failures.length} of ${steps.length} failed: ${labels}`);
}

/** Keeps `connected` true to the socket; ends with the connection. */
async function follow(entry: Entry): Promise<void> {
  for await (const { type } of entry.connection.status()) {
    if (type === "disconnect") entry.connected = false;
    else if (type === "reconnect") entry.connected = true;
  }
}
