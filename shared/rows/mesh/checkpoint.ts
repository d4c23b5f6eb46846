/** `cp.<e>.<token>.status`: whether a question waits for its answer (records §2). */
import Type, { type Static } from "typebox";
import { EndpointLabel, EnvelopeId } from "../../tokens.ts";
import { family } from "../family.ts";
import { oneOf, open, Text } from "../members.ts";

const CheckpointRow = open({
  v: Type.Literal(1),
  state: oneOf("waiting", "resumed", "expired"),
  answerId: Type.Optional(Text),
  settledAnswerId: Type.Optional(Text),
});
export type Checkpoint = Static<typeof CheckpointRow>;

export const checkpointRows = family({
  stream: "records",
  pattern: "cp.{endpoint}.{token}.status",
  parts: { endpoint: EndpointLabel, token: EnvelopeId },
  schema: CheckpointRow,
  // Only what was resumed was settled by an answer.
  agrees: (row) => row.state === "resumed" || row.settledAnswerId === undefined,
  passes: (key) => key.endsWith(".spec"),
});
