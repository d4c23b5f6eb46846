/**
 * The store of a space: rows in, rows out. Handlers see keys, values and revisions, never a subject or a header.
 * One per process; it knows the connection of each account (state §2).
 */
import type { NatsConnection } from "@nats-io/nats-core";
import { internal, unavailable } from "../errors.ts";
import { STORE } from "../limits.ts";
import type { Ports } from "../ports.ts";
import type { Entry, Key, RowFamily } from "../rows/family.ts";
import type { Space } from "../tokens.ts";
import { assertInTime, timeLeft, type Work } from "../work.ts";
import { askApi, BROKER, describe } from "./api.ts";
import type { Message } from "./message.ts";
import { type Found, getMessage, type RawMessage, rowOf } from "./read.ts";
import { snapshot } from "./scan.ts";
import { type AnyStream, placeOf, type StreamAccount, subjectOf } from "./streams.ts";
import { subjectsUnder } from "./subjects.ts";
import { type Observation, takeObservation } from "./take.ts";
import { type Hint, watchSubjects } from "./watch.ts";
import { Commits } from "./write.ts";

/** A connection, or how to get the one of now where it is replaced in the course of time. */
export type ConnectionOf = NatsConnection | (() => NatsConnection | undefined);

export interface StoreOptions {
  readonly space: Space;
  readonly ports: Ports;
  /** Reads and writes. */
  readonly connections: Partial<Record<StreamAccount, ConnectionOf>>;
  /** Scans and watches: these alone may create consumers (state §6). */
  readonly scanConnections?: Partial<Record<StreamAccount, ConnectionOf>>;
}

/** Whatever rows are read through. */
export type Reader = Pick<Store, "read">;

/** Every row under a prefix, and the keys of those that are none. */
export interface Scan<V> {
  readonly entries: Entry<V>[];
  readonly corrupt: string[];
}

export class Store {
  readonly #options: StoreOptions;
  readonly #commits: Commits;

  constructor(options: StoreOptions) {
    this.#options = options;
    this.#commits = new Commits({
      space: options.space,
      ports: options.ports,
      connection: (stream) => this.#connection(options.connections, stream),
      stored: (stream, key, work) => this.#last(stream, key, work),
    });
  }

  /** The row, or nothing if it is absent. `internal` (or the family's code) if unreadable, `unavailable` on a fault. */
  async read<V>(key: Key<V>, work?: Work): Promise<Entry<V> | undefined> {
    const found = await this.inspect(key, work);
    if (found.state === "unreadable") throw key.family.refusal(key.key, found.fault);
    return found.state === "row" ? found.entry : undefined;
  }

  /** As `read`, but what is no row comes back with its revision: for those few who may write over it. */
  async inspect<V>(key: Key<V>, work?: Work): Promise<Found<V>> {
    const message = await this.#last(key.stream, key.key, work);
    return message ? rowOf(key, message) : { state: "absent" };
  }

  /** The first message on a key's subject from a sequence on: evidence of issues, journals. */
  next(stream: AnyStream, key: string, fromRevision: number, work?: Work): Promise<RawMessage | undefined> {
    const get = { seq: fromRevision, next_by_subj: this.#subject(stream, key) };
    return this.#get(stream, get, work);
  }

  /** As `next`, parsed as a row of its family. */
  async nextRow<V>(key: Key<V>, fromRevision: number, work?: Work): Promise<Entry<V> | undefined> {
    const message = await this.next(key.stream, key.key, fromRevision, work);
    if (!message) return undefined;
    const found = rowOf(key, message);
    if (found.state === "unreadable") throw key.family.refusal(key.key, found.fault);
    return found.entry;
  }

  /**
   * All or nothing; the revisions in order of the messages. One message is a single write, several an atomic batch.
   * Lost: `CommitLost` (`conflict`), naming the rows that moved.
   */
  commit(messages: readonly Message[], work: Work): Promise<number[]> {
    return this.#commits.commit(messages, work);
  }

  /** Every row of a family whose key begins with these parts; corrupt ones are reported and do not end it. */
  async scan<V, P>(family: RowFamily<V, P>, prefix: Partial<P>, work?: Work): Promise<Scan<V>> {
    const { space, ports, scanConnections = {} } = this.#options;
    const place = placeOf(family.stream, space);
    const connection = this.#connection(scanConnections, family.stream);
    const inTime = () => {
      if (work) assertInTime(work, ports);
    };
    const messages = await snapshot(connection, place.name, place.prefix + family.under(prefix), ports, inTime);
    const entries: Entry<V>[] = [];
    const corrupt: string[] = [];
    for (const [subject, message] of messages) {
      const key = subject.slice(place.prefix.length);
      if (family.passes(key)) continue;
      const found = rowOf({ stream: family.stream, family, key }, message);
      if (found.state === "row") entries.push(found.entry);
      else corrupt.push(key);
    }
    return { entries, corrupt };
  }

  /** The key of every row of a family that begins with these parts, from the stream's leader. */
  async keys<V, P>(family: RowFamily<V, P>, prefix: Partial<P>, work?: Work): Promise<Key<V>[]> {
    const { stream } = family;
    const place = placeOf(stream, this.#options.space);
    const connection = this.#connection(this.#options.connections, stream);
    const filter = place.prefix + family.under(prefix);
    const subjects = await subjectsUnder(connection, place.name, filter, () => this.#timeout(work));
    const keys = subjects.map((subject) => subject.slice(place.prefix.length));
    return keys.filter((key) => !family.passes(key)).map((key) => ({ stream, family, key }));
  }

  /**
   * Hints that rows may have changed: those of a family, or one; until the signal aborts or the connection closes.
   * Rejects where there is none to watch on.
   */
  async watch<V, P>(
    rows: Key<V> | { readonly family: RowFamily<V, P>; readonly prefix: Partial<P> },
    signal: AbortSignal,
    hint: (hint: Hint) => void,
  ): Promise<void> {
    const { space, ports, scanConnections = {} } = this.#options;
    const place = placeOf(rows.family.stream, space);
    const filter = place.prefix + ("prefix" in rows ? rows.family.under(rows.prefix) : rows.key);
    return watchSubjects(
      this.#connection(scanConnections, rows.family.stream),
      place.name,
      filter,
      ports,
      signal,
      hint,
    );
  }

  /** Consumes the observation of a request by its whole subject; `undefined`: not observed, or taken before. */
  take(subject: string, work: Work): Promise<Observation | undefined> {
    const { space, ports } = this.#options;
    const connection = this.#connection(this.#options.connections, "observations");
    return takeObservation(connection, placeOf("observations", space).name, subject, ports, work);
  }

  /** The stream's last sequence, from its leader; `undefined` where there is no such stream. */
  async lastSeq(stream: AnyStream, work?: Work): Promise<number | undefined> {
    const { name } = placeOf(stream, this.#options.space);
    const connection = this.#connection(this.#options.connections, stream);
    const info = await askApi<{ readonly state?: { readonly last_seq?: number } }>(
      connection,
      `STREAM.INFO.${name}`,
      undefined,
      this.#timeout(work),
    );
    if (info.error?.err_code === BROKER.streamNotFound) return undefined;
    if (info.error || info.state?.last_seq === undefined) {
      throw unavailable(`info of ${name}: ${info.error ? describe(info.error) : "no state"}`);
    }
    return info.state.last_seq;
  }

  #last(stream: AnyStream, key: string, work?: Work): Promise<RawMessage | undefined> {
    return this.#get(stream, { last_by_subj: this.#subject(stream, key) }, work);
  }

  #get(stream: AnyStream, get: Parameters<typeof getMessage>[2], work?: Work): Promise<RawMessage | undefined> {
    const { name } = placeOf(stream, this.#options.space);
    const connection = this.#connection(this.#options.connections, stream);
    return getMessage(connection, name, get, this.#timeout(work));
  }

  #subject(stream: AnyStream, key: string): string {
    return subjectOf(stream, this.#options.space, key);
  }

  #timeout(work?: Work): number {
    return work ? Math.min(STORE.readTimeoutMs, timeLeft(work, this.#options.ports)) : STORE.readTimeoutMs;
  }

  #connection(of: StoreOptions["connections"], stream: AnyStream): NatsConnection {
    const { account } = placeOf(stream, this.#options.space);
    const given = of[account];
    if (given === undefined) throw internal(`no connection for ${stream} in the ${account} account`);
    const connection = typeof given === "function" ? given() : given;
    if (!connection || connection.isClosed()) throw unavailable(`the ${account} account is not connected`);
    return connection;
  }
}
