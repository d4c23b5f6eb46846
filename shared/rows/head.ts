/** `lifecycle.<o>.<a>`: which incarnation of a principal is current, and its root credential (state §3). */
import Type, { type Static } from "typebox";
import { Actor, CredentialId, Owner, Uid } from "../tokens.ts";
import { family } from "./family.ts";
import { Count, closed, Lifecycle, oneOf, Text } from "./members.ts";

const HeadRow = closed({
  ...Lifecycle,
  managerInstance: Text,
  processEpoch: Count,
  state: oneOf("active", "retiring", "retired"),
  currentCredentialId: CredentialId.schema,
  lastTakeoverOpId: Type.Optional(Uid.schema),
  op: Type.Optional(closed({ opId: Uid.schema, kind: Type.Literal("retirement") })),
});
export type Head = Static<typeof HeadRow>;

export const headRows = family({
  stream: "auth",
  pattern: "lifecycle.{owner}.{actor}",
  parts: { owner: Owner, actor: Actor },
  schema: HeadRow,
  agrees: (row, key) =>
    row.owner === key.owner && row.actor === key.actor && (row.state === "retiring") === (row.op !== undefined),
  admits(from, to) {
    if (from === undefined) return to.state === "active";
    const same = from.lifecycleUid === to.lifecycleUid;
    if (from.state === "active") return same && to.state !== "retired";
    if (from.state === "retiring") return same && to.state === "retired";
    return !same && to.state === "active";
  },
});
