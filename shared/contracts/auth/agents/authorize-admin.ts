import Type from "typebox";
import { exampleEnvelope, exampleIncarnation, exampleProof, exampleServe } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Incarnation } from "../../shapes.ts";
import { envelope, Identities, ISSUING_CALLERS, proof, provenEcho, serve } from "../manager-envelope.ts";

const kind = "manager-admin-authorization";

export const managerAuthorizeAdmin = operation({
  service: "auth",
  name: "manager-authorize-admin",
  summary: "Says whether a caller of the manager holds `admin` at this moment",
  effect: "read",
  input: Closed({ ...envelope(kind), ...proof, ...serve, caller: Incarnation }),
  output: Closed({
    ...provenEcho(kind),
    identities: Identities,
    caller: Incarnation,
    /** Every reason against is the same `false`. */
    authorized: Type.Boolean(),
  }),
  callers: ISSUING_CALLERS,
  scope: "supervise",
  http: { kind },
  errors: ["permission-denied", "failed-precondition", "conflict"],
  example: { ...exampleEnvelope(kind), ...exampleProof, ...exampleServe, caller: exampleIncarnation },
});
