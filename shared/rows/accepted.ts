/** `accepted.v1.<token>`: which ceiling a connection got; read by its client (state §7). */
import Type, { type Static } from "typebox";
import { LIFE } from "../limits.ts";
import { Generation } from "../tokens.ts";
import { family } from "./family.ts";
import { Ref } from "./issued.ts";
import { closed } from "./members.ts";

const AcceptedRow = closed({ version: Type.Literal(1), ref: Ref });
export type Accepted = Static<typeof AcceptedRow>;

/** 32 hex digits, derived from a connection's nonce. */
export const AcceptedToken = { is: (value: unknown): value is string => Generation.is(value) };

export const acceptedRows = family({
  stream: "accepted",
  pattern: "accepted.v1.{token}",
  parts: { token: AcceptedToken },
  schema: AcceptedRow,
  admits: (from) => from === undefined,
  // Written at the issue, as its evidence is: both then live equally long.
  lifetime: () => LIFE.issuedMs / 1_000 + LIFE.rowMarginS,
});
