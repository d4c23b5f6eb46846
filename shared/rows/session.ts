/** `session.<sid>`: a terminal session between a serving instance and one holder (state §3, §5). */
import type { Static } from "typebox";
import { LIFE } from "../limits.ts";
import { CredentialId, EndpointLabel, Principal, SessionId, Uid } from "../tokens.ts";
import { family } from "./family.ts";
import { Count, closed, Ms, oneOf, Text } from "./members.ts";

const SessionRow = closed({
  sessionId: SessionId.schema,
  endpoint: EndpointLabel.schema,
  serving: closed({ instanceId: Uid.schema, epoch: Count }),
  holder: closed({ principal: Principal.schema, lifecycleUid: Uid.schema }),
  holderCredentialId: CredentialId.schema,
  servingCredentialId: CredentialId.schema,
  grantSig: Text,
  state: oneOf("active", "closed", "expired", "superseded", "retired"),
  exp: Ms,
});
export type Session = Static<typeof SessionRow>;

export const sessionRows = family({
  stream: "auth",
  pattern: "session.{sessionId}",
  parts: { sessionId: SessionId },
  schema: SessionRow,
  agrees: (row, key) => row.sessionId === key.sessionId,
  // Active to active is a re-issue of the serving half.
  admits: (from, to) => (from === undefined ? to.state === "active" : from.state === "active"),
  lifetime: (row) => (row.state === "active" ? undefined : LIFE.terminalRowS),
});
