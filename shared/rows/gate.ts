/** `gate.<u>` and `epgate.<e>.<iid>`: the rows on which every issuance is fenced (state §4). */
import Type, { type Static } from "typebox";
import { EndpointLabel, Principal, Uid } from "../tokens.ts";
import { family } from "./family.ts";
import { Count, closed, Op, oneOf } from "./members.ts";

const common = {
  state: oneOf("open", "frozen", "retired"),
  generation: Count,
  op: Type.Optional(Op),
};
const GateRow = closed({ lifecycleUid: Uid.schema, ...common });
export type Gate = Static<typeof GateRow>;

const EpGateRow = closed({
  ...common,
  processEpoch: Count,
  registrationRevision: Count,
  nameAuthorityRevision: Count,
  /** Who serves the endpoint instance. */
  principal: Principal.schema,
});
export type EpGate = Static<typeof EpGateRow>;

type State = Pick<Gate, "state" | "generation" | "op">;

const opUnlessOpen = (gate: State): boolean => (gate.state === "open") === (gate.op === undefined);

/** Touches aside: frozen once, then opened a generation further or retired. `retired` is final. */
function moves(from: State, to: State): boolean {
  if (from.state === "open") return to.state === "frozen" && to.generation === from.generation;
  if (from.state === "retired") return false;
  return to.state === "open" ? to.generation === from.generation + 1 : to.generation === from.generation;
}

export const gateRows = family({
  stream: "auth",
  pattern: "gate.{uid}",
  parts: { uid: Uid },
  schema: GateRow,
  agrees: (gate, key) => gate.lifecycleUid === key.uid && opUnlessOpen(gate),
  admits: (from, to) => (from === undefined ? to.state === "open" && to.generation === 1 : moves(from, to)),
});

export const epGateRows = family({
  stream: "auth",
  pattern: "epgate.{endpoint}.{instanceId}",
  parts: { endpoint: EndpointLabel, instanceId: Uid },
  schema: EpGateRow,
  agrees: opUnlessOpen,
  // The end of an instance creates an absent gate retired (state §4).
  admits: (from, to) =>
    from === undefined
      ? to.state !== "frozen" && to.generation === 0
      : moves(from, to) && to.principal === from.principal && to.processEpoch >= from.processEpoch,
});
