/** `admission.v1.<e>.<run>` and `revoked.v1.<e>.<run>`: a run let in, and taken back for good (state §3, operations §5). */
import Type, { type Static } from "typebox";
import { AuthorityError } from "../errors.ts";
import { Actor, EndpointLabel, Generation, Owner, RunId, Space, Uid } from "../tokens.ts";
import { family, type RowFault } from "./family.ts";
import { Ceiling, Ref } from "./issued.ts";
import { Count, closed, Ms, Text } from "./members.ts";

const AdmissionRow = closed({
  version: Type.Literal(1),
  space: Space.schema,
  endpoint: EndpointLabel.schema,
  runId: RunId.schema,
  instanceId: Uid.schema,
  caller: closed({
    owner: Owner.schema,
    actor: Actor.schema,
    uid: Uid.schema,
    generation: Type.Optional(Generation.schema),
  }),
  ceiling: Ceiling,
  provenance: Type.Union([
    closed({ kind: Type.Literal("issued"), ref: Ref, resolvedRevision: Count }),
    closed({ kind: Type.Literal("operator"), by: Text, reason: Text }),
  ]),
  admittedAt: Ms,
});
export type Admission = Static<typeof AdmissionRow>;

const RevocationRow = closed({
  version: Type.Literal(1),
  runId: RunId.schema,
  reason: Text,
  by: Text,
  revokedAt: Ms,
});
export type Revocation = Static<typeof RevocationRow>;

const parts = { endpoint: EndpointLabel, runId: RunId };

/** The admission store has codes of its own for what it cannot read (operations, before §1). */
const refusal = (key: string, fault: RowFault): AuthorityError =>
  fault === "marker"
    ? new AuthorityError("failed-precondition", "the admission store needs repair", { reason: `marker on ${key}` })
    : new AuthorityError("permission-denied", "the run is not admitted", { reason: `garbled ${key}` });

export const admissionRows = family({
  stream: "admission",
  pattern: "admission.v1.{endpoint}.{runId}",
  parts,
  schema: AdmissionRow,
  agrees: (row, key) => row.endpoint === key.endpoint && row.runId === key.runId,
  admits: (from) => from === undefined,
  refusal,
});

export const revocationRows = family({
  stream: "admission",
  pattern: "revoked.v1.{endpoint}.{runId}",
  parts,
  schema: RevocationRow,
  agrees: (row, key) => row.runId === key.runId,
  admits: (from) => from === undefined,
  refusal,
});
