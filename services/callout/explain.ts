/**
 * From the reference in a denial to what happened and what to do (identity §9.2). The broker logs no more than
 * `<code> ref=<id>`; the rest stands in our own log, one JSON line per request.
 *
 * ```ts
 * const explanation = await explain(createInterface({ input: createReadStream("authority.log") }), ref);
 * ```
 */
import type { ErrorCode } from "../../shared/errors.ts";
import { CONNECT_LINE, type ConnectLine } from "./log.ts";

export interface Explanation {
  readonly line: ConnectLine;
  /** When, in ISO 8601. */
  readonly at?: string;
  /** What the operator or the client does about it. */
  readonly advice: string;
}

type Advice = Partial<Record<ErrorCode | "otherwise", string>>;

const EXCHANGE = "The client exchanges its login for a new bearer";
const FRESH_NONCE = "Two connections were made under one nonce at once: each draws its own and tries again.";
const STORE =
  "A row could not be read or written: look at the broker and at the authority account's streams. The client may try again.";
const CORRUPT = "A row is unreadable or contradicts another one; the reason names it. See `repair-row`.";

/** By the step that denied, then by code. */
export const ADVICE: Readonly<Record<string, Advice>> = {
  turn: {
    otherwise: "More clients connect at once than the store carries, or this replica is not ready. They may try again.",
  },
  proof: {
    unauthenticated: `${EXCHANGE} of this space. If everybody is refused, compare the clocks and the keys in \`trust\`.`,
    expired: `${EXCHANGE} before it connects; if it just has, compare the clocks.`,
    unavailable: "`trust` could not be read, or no exchange has written it yet.",
  },
  nonce: {
    otherwise:
      "The connection's name must be a nonce: 22 to 64 of `A-Z a-z 0-9 - _`, such as 16 random bytes in base64url, and no nkey.",
  },
  rows: {},
  actor: {
    otherwise: `${EXCHANGE}: the actor was revoked, narrowed or granted anew since this one was signed. \`actor list\` shows the row.`,
  },
  root: {
    otherwise: `${EXCHANGE}: the lifecycle is frozen or ended, or its root was renewed, has lapsed or was revoked. If that is refused as well, grant the actor anew.`,
  },
  view: {
    otherwise: `${EXCHANGE}: the scope, the session or the manager behind this view is gone.`,
  },
  inbox: {
    otherwise:
      "Another principal holds this nonce: the client draws a fresh one. If it happens again, somebody learns nonces and tries to read along.",
  },
  permissions: {
    "resource-exhausted": "The permissions do not fit: give the actor fewer or wider channel patterns.",
  },
  issued: {
    "failed-precondition": "The permissions changed since this nonce was accepted: the client draws a fresh one.",
    conflict: FRESH_NONCE,
    "resource-exhausted":
      "This actor made too many connections under fresh nonces: a client that reconnects keeps its nonce. Did it not, revoke the actor.",
  },
  hold: { conflict: FRESH_NONCE },
  unmoved: {
    otherwise:
      "The actor or its gate changed while the connection was being admitted: the client may try again. Denied again, it was revoked.",
  },
};

/** `undefined` where no line bears that reference: another replica's log may. Lines that are no connect line are passed over. */
export async function explain(
  lines: AsyncIterable<string> | Iterable<string>,
  ref: string,
): Promise<Explanation | undefined> {
  for await (const text of lines) {
    const parsed = text.includes(ref) ? connectLine(text) : undefined;
    if (parsed?.line.ref !== ref) continue;
    return { ...parsed, advice: adviceOn(parsed.line) };
  }
  return undefined;
}

function adviceOn({ decision, code, check }: ConnectLine): string {
  if (decision === "admitted") return "The connection was admitted.";
  if (decision === "silent")
    return "Nothing was answered: no server of this operator asked, or it had stopped waiting, or our clock is ahead.";
  const advice = (check !== undefined && Object.hasOwn(ADVICE, check) && ADVICE[check]) || {};
  const exact = code === undefined ? undefined : advice[code];
  if (exact !== undefined) return exact;
  if (code === "internal") return CORRUPT;
  if (code === "unavailable" && check !== "turn") return STORE;
  return advice.otherwise ?? "The reason says what was found.";
}

function connectLine(text: string): { line: ConnectLine; at?: string } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isConnectLine(value)) return undefined;
  const { time, level, pid, hostname, msg, ...line } = value;
  return { line, ...(typeof time === "number" ? { at: new Date(time).toISOString() } : {}) };
}

/** What the logger adds. */
type Framed = ConnectLine & Partial<Record<"time" | "level" | "pid" | "hostname" | "msg", unknown>>;

function isConnectLine(value: unknown): value is Framed {
  if (typeof value !== "object" || value === null) return false;
  const { msg, ref, decision, ms } = value as Record<string, unknown>;
  return msg === CONNECT_LINE && typeof ref === "string" && typeof decision === "string" && typeof ms === "number";
}
