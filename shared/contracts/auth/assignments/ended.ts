/** What both ends of an instance answer. An unverified eviction fails nothing: every `exp` bounds the rest. */
import Type from "typebox";
import { SafeInteger } from "../../../envelope.ts";
import { RequestId, Uid } from "../../../tokens.ts";
import { Principals } from "../../shapes.ts";

export const ended = {
  requestId: RequestId.schema,
  instanceId: Uid.schema,
  opId: Uid.schema,
  retired: Type.Literal(true),
  /** How many. */
  revokedRows: SafeInteger(),
  evictedPrincipals: Principals,
  evictionVerified: Type.Boolean(),
};
