import Type from "typebox";
import { ARGUMENT } from "../../../limits.ts";
import { Actor, Hex64, Owner, RoleName, Uid } from "../../../tokens.ts";
import { exampleEnvelope, exampleProof, exampleServe } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Text } from "../../shapes.ts";
import { Channels, Scopes } from "../actors/actor-row.ts";
import { envelope, proof, provenEcho, serve } from "../manager-envelope.ts";

const kind = "manager-managed-agent-enrollment";

export const agentEnroll = operation({
  service: "auth",
  name: "agent-enroll",
  summary: "Activates a managed agent within what its supervising actor may do",
  effect: "write",
  input: Closed({
    ...envelope(kind),
    ...proof,
    ...serve,
    target: Closed({
      actor: Actor.schema,
      /** SHA-256 of the agent's secret, which never leaves its manager. */
      tokenHash: Hex64.schema,
      capabilities: Type.Optional(Scopes),
      subscribe: Type.Optional(Channels),
      allowSubscribe: Type.Optional(Channels),
      allowPublish: Type.Optional(Channels),
      role: Type.Optional(RoleName.schema),
      label: Type.Optional(Text(ARGUMENT.label)),
    }),
  }),
  output: Closed({
    ...provenEcho(kind),
    material: Closed({
      owner: Owner.schema,
      actor: Actor.schema,
      lifecycleUid: Uid.schema,
      sentinelCreds: Text(ARGUMENT.sentinelCreds),
      subscribe: Channels,
      allowSubscribe: Channels,
      allowPublish: Channels,
      agentBearerExchangeUrl: Text(ARGUMENT.url),
    }),
  }),
  callers: ["human", "manager"],
  scope: "supervise",
  http: { kind },
  errors: ["permission-denied", "already-exists", "failed-precondition", "conflict", "unavailable"],
  example: {
    ...exampleEnvelope(kind),
    ...exampleProof,
    ...exampleServe,
    target: {
      actor: "coder",
      tokenHash: "0f".repeat(32),
      subscribe: ["team.build"],
      allowSubscribe: ["team.>"],
      allowPublish: ["team.build"],
    },
  },
});
