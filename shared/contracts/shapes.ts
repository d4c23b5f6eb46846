/** Shapes that several operations share. Everything is closed and bounded (wire §6). */
import Type from "typebox";
import { SafeInteger } from "../envelope.ts";
import { CREDENTIAL, CUSTODIAN } from "../limits.ts";
import { Actor, Owner, Principal, Uid } from "../tokens.ts";
import { Closed } from "./operation.ts";

/** A string without a grammar of its own, in characters. */
export const Text = (maxLength: number, minLength = 1) => Type.String({ minLength, maxLength });

/** Unix time in ms. */
export const Millis = SafeInteger();
/** Unix time in s. */
export const Seconds = SafeInteger();

/** The members that name one incarnation of a principal. */
export const incarnation = { owner: Owner.schema, actor: Actor.schema, lifecycleUid: Uid.schema };
/** `T` of operations §8. */
export const Incarnation = Closed(incarnation);

/** A signed credential; `exp` in s. */
export const Signed = Closed({ jwt: Text(CREDENTIAL.maxJwt), exp: Seconds });

/** Principals that an operation reports. */
export const Principals = Type.Array(Principal.schema, { maxItems: CUSTODIAN.maxTargets });

/** Principals that one eviction names (lifecycles §2). */
export const EvictionTargets = Type.Array(Principal.schema, {
  minItems: 1,
  maxItems: CUSTODIAN.targetsPerRequest,
  uniqueItems: true,
});

/** What became of one evicted principal; `verifiedGone` stands only under a complete sweep without survivors. */
export const Eviction = Closed({
  principal: Principal.schema,
  kicked: SafeInteger(),
  remaining: SafeInteger(),
  verifiedGone: Type.Boolean(),
  scanComplete: Type.Boolean(),
  note: Type.Optional(Text(CUSTODIAN.maxNote, 0)),
});
export const Evictions = Type.Array(Eviction, { maxItems: CUSTODIAN.targetsPerRequest });
