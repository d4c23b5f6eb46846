/** What a refusal means to whoever typed the command, and what to do about it. */

import { AuthorityError, type ErrorDetail, textOf } from "../../shared/errors.ts";
import { refused } from "../../shared/secrets/document.ts";

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

export interface Failure {
  readonly exit: number;
  readonly value: { error: { code: string; message: string; outcome?: string; details?: readonly ErrorDetail[] } };
  readonly text: string;
}

export function failureOf(error: unknown): Failure {
  if (!(error instanceof AuthorityError)) {
    return { exit: EXIT.refused, value: { error: { code: "internal", message: textOf(error) } }, text: textOf(error) };
  }
  const { code, details, outcome, reason } = error;
  const message = reason === undefined || reason === error.message ? error.message : `${error.message}: ${reason}`;
  const lines = [`${code}: ${message}`, ...details.map(aboutDetail), ...remedies(error).map((line) => `→ ${line}`)];
  return {
    exit: code === "unavailable" || code === "deadline-exceeded" ? EXIT.again : EXIT.refused,
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

function remedies({ code, details, outcome, message }: AuthorityError): string[] {
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
    lines.push("make a space with `init`, name another folder with --state, or bring the file back from a backup");
  }
  if (code === "contract-mismatch") lines.push("this command line and the running auth are of different versions");
  return lines;
}
