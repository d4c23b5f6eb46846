import Type from "typebox";
import { SafeInteger } from "../../../envelope.ts";
import { ARGUMENT } from "../../../limits.ts";
import { SessionId, UserNkey } from "../../../tokens.ts";
import { EXAMPLE, exampleEnvelope, exampleIncarnation, exampleNkey, exampleProof } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Incarnation, Seconds, Signed, Text } from "../../shapes.ts";
import { ISSUING_CALLERS, material, proof, SERVICE_AUTHORITY, serviceAuthority } from "../manager-envelope.ts";

const name = "session";

const common = {
  id: UserNkey.schema,
  endpoint: Type.Literal("manager"),
  sessionId: SessionId.schema,
  epoch: SafeInteger(),
  exp: Seconds,
};
/** With holder and signature a session is opened, without both its serving half is issued again. */
const Session = Type.Union([
  Closed({ ...common, holder: Incarnation, grantSig: Text(ARGUMENT.grantSig) }),
  Closed(common),
]);

export const managerSession = operation({
  service: "auth",
  name: "manager-session",
  summary: "Opens a session between a manager and one holder, or issues its serving credential again",
  effect: "write",
  input: Closed({ ...serviceAuthority(name), ...proof, session: Session }),
  output: Closed({ ...material(name), ...proof, credentials: Closed({ sessionServing: Signed }) }),
  callers: ISSUING_CALLERS,
  scope: "supervise",
  http: { kind: SERVICE_AUTHORITY, operation: name },
  errors: ["permission-denied", "not-found", "failed-precondition", "conflict", "expired"],
  example: {
    ...exampleEnvelope(SERVICE_AUTHORITY, name),
    ...exampleProof,
    session: {
      id: exampleNkey("F"),
      endpoint: "manager",
      sessionId: "s7Qm1xVb7sKQd4tYpAzR2w",
      epoch: 3,
      exp: 1_767_225_600,
      holder: { ...exampleIncarnation, actor: EXAMPLE.actor },
      grantSig: "<the manager's signature over the grant>",
    },
  },
});
