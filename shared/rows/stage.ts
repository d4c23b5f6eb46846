/** `stage.<opId>`: how far a barrier has come (state §4, lifecycles §1). */
import Type, { type Static } from "typebox";
import { LIFE } from "../limits.ts";
import { Principal, Uid } from "../tokens.ts";
import { family } from "./family.ts";
import { Count, closed, Ms, Op, oneOf, Text } from "./members.ts";

/** In order; the last two are ends. */
export const PHASES = ["frozen", "contained", "drained", "finished", "aborted"] as const;

const StageRow = closed({
  v: Type.Literal(1),
  opId: Uid.schema,
  kind: Op.properties.kind,
  /** The key of the gate it holds. */
  gate: Text,
  fromGeneration: Count,
  principal: Principal.schema,
  evicted: Type.Array(Principal.schema),
  startedBy: Text,
  at: Ms,
  phase: oneOf(...PHASES),
});
export type Stage = Static<typeof StageRow>;

/** Nothing more will be done for this stage. */
export const isEnded = ({ phase }: Pick<Stage, "phase">): boolean => phase === "finished" || phase === "aborted";

export const stageRows = family({
  stream: "auth",
  pattern: "stage.{opId}",
  parts: { opId: Uid },
  schema: StageRow,
  agrees: (row, key) => row.opId === key.opId,
  // Forward only; the same phase again carries a fence.
  admits: (from, to) =>
    from === undefined ? true : !isEnded(from) && PHASES.indexOf(to.phase) >= PHASES.indexOf(from.phase),
  lifetime: (row) => (isEnded(row) ? LIFE.terminalRowS : undefined),
});
