/**
 * The token rule: under which checkpoint a step of a run is answered, derived from the run's own journal and from
 * nothing that the caller says (operations §5).
 */
import { createHash } from "node:crypto";
import { type Step, stepKeyOf } from "../../../shared/rows/mesh/journal.ts";
import { EnvelopeId } from "../../../shared/tokens.ts";

export interface Answerable {
  /** Names the checkpoint `cp.manager.<token>`. */
  readonly token: EnvelopeId;
  /** The step still waits, by the journal. */
  readonly pending: boolean;
}

const HOLD = "cotal.hold.v1";
const ANSWERED_KINDS: ReadonlySet<string> = new Set(["checkpoint", "ask"]);

/** Nothing where no record has that key, or it is no step that anybody answers. */
export function answerable(steps: readonly Step[], stepKey: string): Answerable | undefined {
  const records = steps.map(({ entry }) => entry).filter((entry) => stepKeyOf(entry) === stepKey);
  const last = records.at(-1);
  if (!last) return undefined;
  const held = records.some((entry) => Object.hasOwn(entry, "hold"));
  if (!held && !ANSWERED_KINDS.has(last.kind)) return undefined;
  const token = held ? holdToken(last.requestId) : last.kind === "ask" ? askToken(records) : last.requestId;
  return EnvelopeId.is(token) ? { token, pending: last.state === "pending" } : undefined;
}

/** A step that was held back is answered under a name of its own. */
export const holdToken = (requestId: string): string =>
  createHash("sha256").update(`${HOLD}\0${requestId}`).digest("base64url");

/** An ask names its token once it was put to somebody; until then it is the request's. */
function askToken(records: readonly Step["entry"][]): string | undefined {
  const named = records.findLast(({ external }) => external?.askToken !== undefined);
  return named?.external?.askToken ?? records.at(-1)?.requestId;
}
