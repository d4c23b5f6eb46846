/** What the reference names instead of spelling it out: the tokens of the wire, and shapes that recur. */
import type { TSchema } from "typebox";
import { ActorRow } from "../../shared/contracts/auth/actors/actor-row.ts";
import { EpGate } from "../../shared/contracts/auth/maintain/reconcile.ts";
import { Actors, Identities } from "../../shared/contracts/auth/manager-envelope.ts";
import { Admission, Ceiling, Revocation } from "../../shared/contracts/auth/runs/admission.ts";
import { ConnectionTuple } from "../../shared/contracts/custodian/liveness.ts";
import { ClusterDocument } from "../../shared/contracts/describe.ts";
import { Eviction, Incarnation, Signed } from "../../shared/contracts/shapes.ts";
import * as tokens from "../../shared/tokens.ts";

export interface NamedToken {
  readonly name: string;
  readonly schema: TSchema;
  readonly pattern: string;
}

const isToken = (value: unknown): value is { name: string; schema: TSchema; pattern: RegExp } =>
  typeof value === "object" && value !== null && "pattern" in value && "schema" in value;

export const TOKENS: readonly NamedToken[] = Object.values(tokens as Record<string, unknown>)
  .filter(isToken)
  .map(({ name, schema, pattern }) => ({ name, schema, pattern: pattern.source }))
  .sort((a, b) => (a.name < b.name ? -1 : 1));

export interface Shape {
  readonly name: string;
  readonly schema: TSchema;
  readonly says: string;
}

export const SHAPES: readonly Shape[] = [
  { name: "Identities", schema: Identities, says: "The five identities of a manager instance." },
  { name: "Actors", schema: Actors, says: "The derived actors of the five identities." },
  { name: "Signed", schema: Signed, says: "A signed credential; `exp` in seconds." },
  { name: "Incarnation", schema: Incarnation, says: "One incarnation of a principal." },
  { name: "Eviction", schema: Eviction, says: "What became of one evicted principal." },
  { name: "Admission", schema: Admission, says: "The row that lets a run in." },
  { name: "Revocation", schema: Revocation, says: "The row that takes a run back for good." },
  { name: "Ceiling", schema: Ceiling, says: "The most that a connection may publish and subscribe." },
  { name: "ActorRow", schema: ActorRow, says: "An actor without the hash of its secret; times in milliseconds." },
  { name: "Gate", schema: EpGate, says: "The row on which everything issued to an instance is fenced." },
  { name: "Tuple", schema: ConnectionTuple, says: "One connection to one server." },
  { name: "ClusterDocument", schema: ClusterDocument, says: "What one service declares." },
];
