/** What a refusal means to whoever typed the command, and what to do about it. */

import { InvalidArgumentError } from "commander";
import { AuthorityError, type ErrorDetail, textOf } from "../../shared/errors.ts";
import { refused } from "../../shared/secrets/document.ts";
import { chmodFor } from "./checks/files.ts";

/** Exit codes of the command line. */
export const EXIT = {
  done: 0,
  /** Refused, or found wanting. */
  refused: 1,
  /** The command itself is wrong. */
  usage: 2,
  /** Nobody could answer now; the same command may be repeated. */
  again: 75,
} as const;

/** What every refusal of a state folder says in public. */
const STATE_REFUSES = refused("", "").message;

/** The command itself is wrong, in a way that only its work finds out. */
export class WrongCommand extends AuthorityError {
  constructor(message: string) {
    super("bad-request", message);
  }
}

export interface Failure {
  readonly exit: number;
  readonly value: { error: { code: string; message: string; outcome?: string; details?: readonly ErrorDetail[] } };
  readonly text: string;
}

/** What a file of the state does not admit was typed wrong; any other refusal stays what it is. */
export function asWrongCommand(error: unknown): never {
  const reason = error instanceof AuthorityError ? error.reason : undefined;
  if (reason?.startsWith(UNWRITTEN)) throw new WrongCommand(reason.slice(UNWRITTEN.length));
  throw error;
}
const UNWRITTEN = "a file to be written: ";

export function failureOf(given: unknown): Failure {
  const error = given instanceof InvalidArgumentError ? new WrongCommand(given.message) : given;
  if (!(error instanceof AuthorityError)) {
    return { exit: EXIT.refused, value: { error: { code: "internal", message: textOf(error) } }, text: textOf(error) };
  }
  const { code, details, outcome, reason } = error;
  const message = reason === undefined || reason === error.message ? error.message : `${error.message}: ${reason}`;
  const lines = [`${code}: ${message}`, ...details.map(aboutDetail), ...remedies(error).map((line) => `→ ${line}`)];
  return {
    exit: exitOf(error),
    value: {
      error: {
        code,
        message,
        ...(outcome === undefined ? {} : { outcome }),
        ...(details.length === 0 ? {} : { details }),
      },
    },
    text: lines.filter((line) => line !== "").join("\n"),
  };
}

function exitOf(error: AuthorityError): number {
  if (error instanceof WrongCommand) return EXIT.usage;
  return error.code === "unavailable" || error.code === "deadline-exceeded" ? EXIT.again : EXIT.refused;
}

/** Why something failed, without its stack; a failed `fetch` says so only in its cause. */
export const whyOf = (error: unknown): string =>
  error instanceof Error && error.cause !== undefined ? textOf(error.cause) : textOf(error);

function aboutDetail(detail: ErrorDetail): string {
  switch (detail.kind) {
    case "ai.cotal.ep.validation":
      return detail.errors.map(({ path, message }) => `  ${path || "/"}: ${message}`).join("\n");
    case "ai.cotal.auth.drain-blocked": {
      const rows = detail.rows.map(({ key, state, route }) => `  ${key} (${state}${route ? `, ${route}` : ""})`);
      return [...rows, ...(detail.more > 0 ? [`  and ${detail.more} more`] : [])].join("\n");
    }
    case "ai.cotal.auth.op-held":
      return `  held by ${detail.opKind} ${detail.opId}`;
    case "ai.cotal.auth.current-lifecycle":
      return `  the active incarnation is ${detail.lifecycleUid}`;
    case "ai.cotal.auth.plane-claim-refused":
      return `  retirements: ${detail.reason}`;
    default:
      return "";
  }
}

function remedies({ code, details, outcome, message, reason = "" }: AuthorityError): string[] {
  const kinds = new Set(details.map(({ kind }) => kind));
  const lines: string[] = [];
  if (kinds.has("ai.cotal.auth.current-lifecycle")) {
    lines.push("revoke it first (actor revoke), or let `actor grant --replace` do both");
  }
  if (kinds.has("ai.cotal.auth.op-held")) lines.push("repeat once that has finished; it goes on by itself");
  if (kinds.has("ai.cotal.auth.drain-blocked")) {
    lines.push("let these be settled, or end one with `drain-abandon <opId> <key> <revision>`, then repeat");
  }
  if (code === "unauthenticated") {
    lines.push("the broker does not know these creds: after `init` or `rotate` it needs `nats-server --signal reload`");
  }
  if (code === "unavailable") {
    lines.push("see that the broker and the services run (`doctor`), then repeat the same command");
    if (outcome === "unknown") lines.push("it may have happened all the same; to repeat it is safe");
  }
  if (message === STATE_REFUSES) {
    const another = "make a space with `init`, name another folder with --state, or bring the file back from a backup";
    lines.push(chmodFor(reason) ?? another);
  }
  if (code === "contract-mismatch") lines.push("this command line and the running auth are of different versions");
  return lines;
}
