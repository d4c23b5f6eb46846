/** `frontier.<u>`: how far each stream had come when a lifecycle was retired (state §3). */
import Type, { type Static } from "typebox";
import { Uid } from "../tokens.ts";
import { family } from "./family.ts";
import { Count, closed } from "./members.ts";

const FrontierRow = closed({
  lifecycleUid: Uid.schema,
  opId: Uid.schema,
  /** Last sequence by stream name; a stream that does not exist is left out. */
  streams: Type.Record(Type.String({ pattern: "^[A-Za-z0-9_-]{1,128}$" }), Count, { additionalProperties: false }),
});
export type Frontier = Static<typeof FrontierRow>;

export const frontierRows = family({
  stream: "auth",
  pattern: "frontier.{uid}",
  parts: { uid: Uid },
  schema: FrontierRow,
  agrees: (row, key) => row.lifecycleUid === key.uid,
  admits: (from) => from === undefined,
});
