import Type from "typebox";
import { RequestId, Uid } from "../../../tokens.ts";
import { EXAMPLE } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { incarnation, Principals } from "../../shapes.ts";

export const actorRevoke = operation({
  service: "auth",
  name: "actor-revoke",
  summary: "Denies an incarnation everything at once, then retires it",
  effect: "write",
  input: Closed({ requestId: RequestId.schema, ...incarnation }),
  output: Closed({
    requestId: RequestId.schema,
    ...incarnation,
    opId: Uid.schema,
    revoked: Type.Literal(true),
    retired: Type.Literal(true),
    evictedPrincipals: Principals,
  }),
  callers: ["operator", "admin"],
  errors: ["permission-denied", "not-found", "expired", "failed-precondition", "conflict", "unavailable"],
  example: {
    requestId: EXAMPLE.requestId,
    owner: EXAMPLE.owner,
    actor: EXAMPLE.actor,
    lifecycleUid: EXAMPLE.lifecycleUid,
  },
});
