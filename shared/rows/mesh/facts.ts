/** Facts on `P.epf`: decisions and ends that others publish once; of these `auth` writes rejections only (records §3). */
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { Actor, Command, Digest, EndpointLabel, EnvelopeId, Owner, Principal, Uid } from "../../tokens.ts";
import { family } from "../family.ts";
import { Count, closed, Ms, oneOf, open, Text } from "../members.ts";

const common = {
  v: Type.Literal(1),
  id: EnvelopeId.schema,
  fingerprint: Digest.schema,
  caller: closed({ id: Principal.schema, lifecycleUid: Uid.schema }),
  sourceSeq: Count,
  ts: Ms,
};
const authzDecision = open({ revision: Count, epoch: Count });

const RejectionFact = closed({
  ...common,
  decision: Type.Literal("rejected"),
  error: closed({ code: Type.String({ maxLength: 64 }), detail: Type.Optional(Type.String({ maxLength: 256 })) }),
  authzDecision: Type.Optional(authzDecision),
});
export type RejectionFact = Static<typeof RejectionFact>;

const AcceptanceFact = open({
  ...common,
  decision: Type.Literal("accepted"),
  request: open({ goalId: Type.Optional(EnvelopeId.schema) }),
  target: Type.Optional(Type.Unknown()),
  contractDigests: open({ input: Digest.schema, output: Digest.schema }),
  authzDecision,
  route: Text,
  readinessDeadlineMs: Type.Optional(Type.Number()),
  workExpiry: Type.Optional(Ms),
});
export type AcceptanceFact = Static<typeof AcceptanceFact>;

const EffectFact = Type.Union([
  open({ ...common, outcome: Type.Literal("ran") }),
  open({
    ...common,
    outcome: Type.Literal("cancelled"),
    cancelled: open({ opId: Text, target: Type.Unknown() }),
  }),
]);
export type EffectFact = Static<typeof EffectFact>;

const PoolFact = open({ ...common, outcome: Type.Unknown() });
export type PoolFact = Static<typeof PoolFact>;

const GoalEnd = oneOf("succeeded", "failed", "cancelled", "expired", "uncertain");
const GoalResult = open({ ...common, goalId: EnvelopeId.schema, state: GoalEnd, data: Type.Optional(Type.Unknown()) });
export type GoalResult = Static<typeof GoalResult>;
const isResult = Compile(GoalResult);

/** What a result becomes later on. */
const Tombstone = open({
  goalId: EnvelopeId.schema,
  fingerprint: Digest.schema,
  state: GoalEnd,
  outcomeDigest: Digest.schema,
});
export type Tombstone = Static<typeof Tombstone>;

const triple = { owner: Owner, actor: Actor, uid: Uid };
type Caller = { readonly owner: Owner; readonly actor: Actor; readonly uid: Uid };
type Fact = { readonly id: string; readonly caller: { readonly id: string; readonly lifecycleUid: string } };

const isOf = ({ caller }: Pick<Fact, "caller">, key: Caller): boolean =>
  caller.id === `${key.owner}.${key.actor}` && caller.lifecycleUid === key.uid;
const names = (fact: Fact, key: Caller & { readonly id: string }): boolean => fact.id === key.id && isOf(fact, key);

/** Create only: the first decision on a request is the decision. */
export const decisionFacts = family({
  stream: "facts",
  pattern: "{endpoint}.dec.{owner}.{actor}.{uid}.{id}",
  parts: { endpoint: EndpointLabel, ...triple, id: EnvelopeId },
  schema: Type.Union([RejectionFact, AcceptanceFact]),
  agrees: names,
  admits: (from) => from === undefined,
});

export const effectFacts = family({
  stream: "facts",
  pattern: "{endpoint}.eff.{owner}.{actor}.{uid}.{id}",
  parts: { endpoint: EndpointLabel, ...triple, id: EnvelopeId },
  schema: EffectFact,
  agrees: names,
});

export const poolFacts = family({
  stream: "facts",
  pattern: "{endpoint}.wrk.{pool}.{owner}.{actor}.{uid}.{id}",
  parts: { endpoint: EndpointLabel, pool: Command, ...triple, id: EnvelopeId },
  schema: PoolFact,
  agrees: names,
});

export const goalFacts = family({
  stream: "facts",
  pattern: "{endpoint}.goal.{owner}.{actor}.{uid}.{goalId}.result",
  parts: { endpoint: EndpointLabel, ...triple, goalId: EnvelopeId },
  schema: Type.Union([GoalResult, Tombstone]),
  agrees: (fact, key) => fact.goalId === key.goalId && (!isResult.Check(fact) || isOf(fact, key)),
});
