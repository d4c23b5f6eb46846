/** Leader-served reads of single messages (state §2): what decides is never read from a follower. */
import { Buffer } from "node:buffer";
import type { NatsConnection } from "@nats-io/nats-core";
import { unavailable } from "../errors.ts";
import type { Entry, Key, RowFault } from "../rows/family.ts";
import { askApi, BROKER, describe } from "./api.ts";

/** A stored message as the leader gives it. */
export interface RawMessage {
  readonly subject: string;
  readonly revision: number;
  readonly body: Uint8Array;
  readonly headers: ReadonlyMap<string, string>;
  /** Unix milliseconds of its arrival, by the broker's clock. */
  readonly at: number;
}

/** A row, its absence, or a message that is neither (records §1). */
export type Found<V> = { readonly state: "absent" } | Readable<V>;

export type Readable<V> =
  | { readonly state: "row"; readonly entry: Entry<V> }
  | { readonly state: "unreadable"; readonly fault: RowFault; readonly revision: number };

interface GetAnswer {
  readonly message?: {
    readonly subject: string;
    readonly seq: number;
    readonly hdrs?: string;
    readonly data?: string;
    readonly time: string;
  };
}

export type Get =
  | { readonly last_by_subj: string }
  | { readonly seq: number; readonly next_by_subj: string }
  | { readonly seq: number };

/** One message from the stream's leader; a timeout or fault is `unavailable`, never absence. */
export async function getMessage(
  connection: NatsConnection,
  stream: string,
  get: Get,
  timeoutMs: number,
): Promise<RawMessage | undefined> {
  const { message, error } = await askApi<GetAnswer>(connection, `STREAM.MSG.GET.${stream}`, get, timeoutMs);
  if (error?.err_code === BROKER.noMessage) return undefined;
  if (error || !message) throw unavailable(`reading ${stream}: ${error ? describe(error) : "no message"}`);
  return {
    subject: message.subject,
    revision: message.seq,
    body: Buffer.from(message.data ?? "", "base64"),
    headers: headersIn(message.hdrs),
    at: Date.parse(message.time),
  };
}

/** The header block of a stored message: a status line, then `Name: value` lines. */
function headersIn(block: string | undefined): Map<string, string> {
  const lines = Buffer.from(block ?? "", "base64")
    .toString("utf8")
    .split("\r\n")
    .slice(1);
  return new Map(
    lines.flatMap((line) => {
      const colon = line.indexOf(":");
      return colon < 1 ? [] : [[line.slice(0, colon), line.slice(colon + 1).trim()] as const];
    }),
  );
}

/** Marks a deletion on the broker's side or a client's. */
const MARKERS = ["KV-Operation", "Nats-Marker-Reason", "Nats-Rollup"];

/**
 * Whether a message is a row of its key. A marker is never absence; a `Nats-Stream` header is on what the broker
 * itself answered, under whatever reply subject an asker named (records §1).
 */
export function rowOf<V>(key: Key<V>, message: Omit<RawMessage, "at" | "subject">): Readable<V> {
  const { revision, body, headers } = message;
  if (MARKERS.some((name) => headers.has(name))) return { state: "unreadable", fault: "marker", revision };
  const value = headers.has("Nats-Stream") ? undefined : key.family.decode(key.key, body);
  if (value === undefined) return { state: "unreadable", fault: "garbled", revision };
  return { state: "row", entry: { key, value, revision } };
}
