import Type from "typebox";
import { RequestId } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { incarnation, Millis } from "../../shapes.ts";

const kind = "actor-renew";

/** A human needs no scope for its own row; a manager's granter must hold `supervise`. */
export const actorRenew = operation({
  service: "auth",
  name: "actor-renew",
  summary: "Makes the next root credential of an incarnation, from 60 days of age on",
  effect: "write",
  input: Closed({ kind: Type.Literal(kind), requestId: RequestId.schema, ...incarnation }),
  output: Closed({
    requestId: RequestId.schema,
    ...incarnation,
    /** The root's. */
    exp: Millis,
    renewed: Type.Boolean(),
  }),
  callers: ["operator", "admin", "human", "manager"],
  http: { kind },
  errors: ["permission-denied", "not-found", "expired", "failed-precondition", "conflict"],
  example: {
    kind,
    requestId: EXAMPLE.requestId,
    owner: EXAMPLE.owner,
    actor: EXAMPLE.actor,
    lifecycleUid: EXAMPLE.lifecycleUid,
  },
});
