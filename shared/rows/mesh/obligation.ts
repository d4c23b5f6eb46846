/** `oblig.<u|ep>.<e>.<triple>.<id>`: what a request left to be done for a lifecycle (records §3). */
import Type, { type Static } from "typebox";
import type { Json } from "../../canonical.ts";
import { internal } from "../../errors.ts";
import { Actor, Digest, EndpointLabel, EnvelopeId, KeySegment, Owner, Uid } from "../../tokens.ts";
import { type Family, family, jsonIn, type Key } from "../family.ts";
import { Count, closed, oneOf, Text } from "../members.ts";

const state = oneOf("provisional", "accepted", "rejected", "terminal");
const common = {
  state,
  opId: Text,
  mappingRevision: Type.Optional(Count),
  policyRevision: Type.Optional(Count),
  outcome: Type.Optional(Type.Literal("abandoned")),
};

/** A decision that a canonicalizer publishes as a fact. */
const FactObligation = closed({
  ...common,
  decision: Type.Literal("epf"),
  fingerprint: Digest.schema,
  sourceSeq: Count,
  route: Type.Unsafe<"effects" | `pool.${string}`>({ type: "string", pattern: "^(effects|pool\\.[a-z0-9-]{1,32})$" }),
});
export type FactObligation = Static<typeof FactObligation>;

/** A decision that is itself a record. */
const SelfObligation = closed({
  ...common,
  decision: Type.Literal("self"),
  commitKey: Text,
  commitBaseRevision: Count,
  commitDigest: Digest.schema,
  commitValue: Type.Union([
    closed({ enc: Type.Literal("b64u"), bytes: Type.String() }),
    closed({ enc: Type.Literal("ref"), key: Text }),
  ]),
});
export type SelfObligation = Static<typeof SelfObligation>;

/** What `drain-abandon` writes over a garbled row. */
const AbandonedObligation = closed({
  state: Type.Literal("terminal"),
  outcome: Type.Literal("abandoned"),
  opId: Text,
});
export type AbandonedObligation = Static<typeof AbandonedObligation>;

const ObligationRow = Type.Union([FactObligation, SelfObligation, AbandonedObligation]);
export type Obligation = Static<typeof ObligationRow>;

const RANK = { provisional: 0, accepted: 1, rejected: 2, terminal: 2 } as const;

/** The target's lifecycle, or `ep` where a request had none; only rows under a uid are drained. */
const Target = { is: (value: unknown): value is Uid | "ep" => value === "ep" || Uid.is(value) };

export const obligationRows = family({
  stream: "records",
  pattern: "oblig.{target}.{endpoint}.{owner}.{actor}.{uid}.{id}",
  parts: { target: Target, endpoint: EndpointLabel, owner: Owner, actor: Actor, uid: Uid, id: EnvelopeId },
  schema: ObligationRow,
  agrees: (row) =>
    !("decision" in row) ||
    ((row.mappingRevision !== undefined || row.policyRevision !== undefined) &&
      (row.outcome === undefined || row.state === "terminal")),
  // Forward only, never deleted.
  admits: (from, to) => from === undefined || RANK[to.state] > RANK[from.state],
});

const records: Family<Json> = {
  stream: "records",
  decode: (_key, body) => jsonIn(body),
  lifetime: () => undefined,
  admits: () => false,
  refusal: (key, fault) => internal(`unreadable record ${key}: ${fault}`),
};

/** The record that a `self` obligation would have written: any JSON, only ever compared (records §3). */
export function commitRecord(commitKey: string): Key<Json> | undefined {
  const tokens = commitKey.split(".");
  return tokens.every((token) => KeySegment.is(token))
    ? { stream: records.stream, family: records, key: commitKey }
    : undefined;
}
