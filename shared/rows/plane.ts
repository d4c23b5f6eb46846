/** `plane`: which replica runs retirements (state §3, lifecycles §4). */
import Type, { type Static } from "typebox";
import { ServerNkey, UserNkey } from "../tokens.ts";
import { family } from "./family.ts";
import { Count, closed, oneOf, Text } from "./members.ts";

const TupleMember = closed({ serverId: ServerNkey.schema, cid: Count, userNkey: UserNkey.schema });
const PlaneRow = closed({
  v: Type.Literal(1),
  generation: Count,
  claimId: Text,
  state: oneOf("held", "released"),
  /** Both name the holder's `scan` connection in the authority account. */
  ledger: TupleMember,
  records: TupleMember,
  openedAt: Text,
});
export type Plane = Static<typeof PlaneRow>;

export const planeRows = family({
  stream: "auth",
  pattern: "plane",
  parts: {},
  schema: PlaneRow,
  admits: (from, to) =>
    from === undefined
      ? to.state === "held"
      : to.state === "released"
        ? from.state === "held" && from.claimId === to.claimId
        : to.generation === from.generation + 1,
});
