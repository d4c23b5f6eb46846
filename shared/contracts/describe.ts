/** `describe`: what one incarnation serves, the same for all, read from no store (wire §7). */
import Type from "typebox";
import { SafeInteger } from "../envelope.ts";
import { CONTRACT } from "../limits.ts";
import { MODE_TARGETS, type Mode } from "../subjects.ts";
import { Command, Digest, EndpointLabel, Uid } from "../tokens.ts";
import { Closed, operation, type ServiceName, Void } from "./operation.ts";

const MODES = Object.keys(MODE_TARGETS) as Mode[];
const Empty = Type.Unsafe<readonly []>(Type.Array(Type.Unknown(), { maxItems: 0 }));
const ArtifactRef = Closed({ $ref: Digest.schema });

/** A capability or URN: labels joined by dots, at most 64 characters (wire §1). */
export const Capability = Type.String({ pattern: "^[a-z0-9-]+(\\.[a-z0-9-]+)+$", maxLength: 64 });

/** One command of a cluster document (wire §6). */
export const CommandEntry = Closed({
  name: Command.schema,
  input: ArtifactRef,
  output: ArtifactRef,
  class: Type.Literal("ephemeral"),
  targeted: Type.Boolean(),
  modes: Type.Array(Type.Enum(MODES), { maxItems: MODES.length, uniqueItems: true }),
  capability: Capability,
  effect: Type.Enum(["read", "write"]),
  traits: Empty,
});

export const ClusterDocument = Closed({
  urn: Capability,
  revision: SafeInteger(),
  attributes: Empty,
  commands: Type.Array(CommandEntry, { maxItems: CONTRACT.maxCommands }),
  events: Empty,
});

const Descriptor = Closed({
  endpoint: EndpointLabel.schema,
  owner: Type.Literal("local"),
  instanceId: Uid.schema,
  epoch: SafeInteger(),
  registrationRevision: SafeInteger(),
  protocol: Closed({ v: Type.Literal(2) }),
  clusterDigests: Type.Array(Digest.schema, { minItems: 1, maxItems: 1 }),
  clusters: Type.Array(ClusterDocument, { minItems: 1, maxItems: 1 }),
  commands: Type.Array(Closed({ name: Command.schema, inputDigest: Digest.schema, outputDigest: Digest.schema }), {
    maxItems: CONTRACT.maxCommands,
  }),
});

export const describeOf = (service: ServiceName) =>
  operation({
    service,
    name: "describe",
    summary: `Says which operations this incarnation of ${service} serves`,
    effect: "read",
    input: Void,
    output: Closed({ v: Type.Literal(1), public: Type.Literal(true), descriptor: Descriptor }),
    callers: ["anyone"],
  });
