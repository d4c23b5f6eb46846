import Type from "typebox";
import { ARGUMENT } from "../../../limits.ts";
import { Actor, Owner, Principal, RoleName, Uid } from "../../../tokens.ts";
import { exampleEnvelope, exampleIncarnation, exampleProof, exampleServe } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Incarnation, Text } from "../../shapes.ts";
import { grants } from "../actors/actor-row.ts";
import { envelope, ISSUING_CALLERS, proof, provenEcho, serve } from "../manager-envelope.ts";

const kind = "manager-retained-agent-validation";

export const agentValidateRetained = operation({
  service: "auth",
  name: "agent-validate-retained",
  summary: "Proves that an agent's retained secrets are still its own, and says what it may do",
  effect: "read",
  input: Closed({
    ...envelope(kind),
    ...proof,
    ...serve,
    target: Incarnation,
    actorToken: Text(ARGUMENT.actorToken),
    sentinelCreds: Text(ARGUMENT.sentinelCreds),
  }),
  output: Closed({
    ...provenEcho(kind),
    target: Incarnation,
    authority: Closed({
      owner: Owner.schema,
      actor: Actor.schema,
      lifecycleUid: Uid.schema,
      ...grants,
      role: Type.Optional(RoleName.schema),
      parent: Type.Optional(Principal.schema),
    }),
  }),
  callers: ISSUING_CALLERS,
  scope: "supervise",
  http: { kind },
  errors: ["permission-denied", "failed-precondition", "conflict"],
  example: {
    ...exampleEnvelope(kind),
    ...exampleProof,
    ...exampleServe,
    target: exampleIncarnation,
    actorToken: "<the agent's secret>",
    sentinelCreds: "<the space's sentinel credentials>",
  },
});
