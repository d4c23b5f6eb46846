/** `run.<e>.<run>.status`: where a durable workflow stands, written by its driver (records §2). */
import Type, { type Static } from "typebox";
import { EndpointLabel, RunId, TakeoverId } from "../../tokens.ts";
import { family } from "../family.ts";
import { Count, Ms, oneOf, open } from "../members.ts";

/** `<supervisor nkey>.<takeoverId>`. */
const Holder = Type.String({ pattern: "^[A-Za-z0-9_.-]{1,256}$" });

const RunStatusRow = open({
  v: Type.Literal(1),
  observedSpecRevision: Count,
  /** `released`: given up cleanly, resumable; the last two are ends. */
  state: oneOf("running", "released", "completed", "failed"),
  holder: Holder,
  epoch: Count,
  fencingToken: Count,
  journalHigh: Count,
  at: Ms,
});
export type RunStatus = Static<typeof RunStatusRow>;

export const runStatusRows = family({
  stream: "records",
  pattern: "run.{endpoint}.{runId}.status",
  parts: { endpoint: EndpointLabel, runId: RunId },
  schema: RunStatusRow,
  passes: (key) => key.endsWith(".spec"),
});

export const isEnded = ({ state }: Pick<RunStatus, "state">): boolean => state === "completed" || state === "failed";

/** A holder split at its last dot, or nothing where that is no takeover. */
export function splitHolder(holder: string): { supervisor: string; takeoverId: TakeoverId } | undefined {
  const dot = holder.lastIndexOf(".");
  const takeoverId = holder.slice(dot + 1);
  return dot > 0 && TakeoverId.is(takeoverId) ? { supervisor: holder.slice(0, dot), takeoverId } : undefined;
}
