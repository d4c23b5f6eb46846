/** The rows that admit a run and take it back, as they are answered (state §3). */
import Type from "typebox";
import { SafeInteger } from "../../../envelope.ts";
import { ARGUMENT } from "../../../limits.ts";
import { Actor, EndpointLabel, Generation, Owner, RunId, Space, Uid } from "../../../tokens.ts";
import { Closed } from "../../operation.ts";
import { Millis, Text } from "../../shapes.ts";

const Patterns = Type.Array(Text(ARGUMENT.note, 0), { maxItems: ARGUMENT.patterns });
const Rule = Closed({
  allow: Type.Union([
    Closed({ mode: Type.Enum(["all", "none"]) }),
    Closed({ mode: Type.Literal("patterns"), patterns: Patterns }),
  ]),
  deny: Patterns,
});

/** The most a connection may publish and subscribe. */
export const Ceiling = Closed({ publish: Rule, subscribe: Rule });

const Ref = Closed({
  space: Space.schema,
  owner: Owner.schema,
  actor: Actor.schema,
  uid: Uid.schema,
  generation: Generation.schema,
});

export const Admission = Closed({
  version: Type.Literal(1),
  space: Space.schema,
  endpoint: EndpointLabel.schema,
  runId: RunId.schema,
  instanceId: Uid.schema,
  caller: Closed({
    owner: Owner.schema,
    actor: Actor.schema,
    uid: Uid.schema,
    generation: Type.Optional(Generation.schema),
  }),
  ceiling: Ceiling,
  provenance: Type.Union([
    Closed({ kind: Type.Literal("issued"), ref: Ref, resolvedRevision: SafeInteger() }),
    Closed({ kind: Type.Literal("operator"), by: Text(ARGUMENT.note, 0), reason: Text(ARGUMENT.note, 0) }),
  ]),
  admittedAt: Millis,
});

export const Revocation = Closed({
  version: Type.Literal(1),
  runId: RunId.schema,
  reason: Text(ARGUMENT.note, 0),
  by: Text(ARGUMENT.note, 0),
  revokedAt: Millis,
});
