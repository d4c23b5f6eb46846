/** What a manager's requests have in common, and what is said back (operations §2). Members in the order of the chapter. */
import Type, { type Static } from "typebox";
import { SafeInteger } from "../../envelope.ts";
import { AccountNkey, Actor, Digest, Owner, RequestId, Space, Uid, UserNkey } from "../../tokens.ts";
import { type CallerKind, Closed } from "../operation.ts";
import { Millis } from "../shapes.ts";

export const Id = Closed({ id: UserNkey.schema });
export const Identities = Closed({ supervisor: Id, executor: Id, serve: Id, goalWriter: Id, sessionLedger: Id });
export type Identities = Static<typeof Identities>;

/** The derived actors of the five identities, never sent in a request. */
export const Actors = Closed({
  supervisor: Actor.schema,
  executor: Actor.schema,
  serve: Actor.schema,
  goalWriter: Actor.schema,
  sessionLedger: Actor.schema,
});
export type Actors = Static<typeof Actors>;

/** The envelope but for its proof. */
export const envelope = <K extends string>(kind: K) => ({
  v: Type.Literal(1),
  kind: Type.Literal(kind),
  space: Space.schema,
  actor: Actor.schema,
  instanceId: Uid.schema,
  managerLifecycleUid: Uid.schema,
  requestId: RequestId.schema,
  identities: Identities,
});

export const SERVICE_AUTHORITY = "manager-service-authority";
export const SERVICE_MAINTENANCE = "manager-service-maintenance";

const service = <K extends string, O extends string>(kind: K, operation: O) => ({
  ...envelope(kind),
  operation: Type.Literal(operation),
});
export const serviceAuthority = <O extends string>(operation: O) => service(SERVICE_AUTHORITY, operation);
export const serviceMaintenance = <O extends string>(operation: O) => ({
  ...service(SERVICE_MAINTENANCE, operation),
  targetInstanceId: Uid.schema,
});

/** Which of the two proofs it is depends on the operation (operations §3). */
export const proof = { registrationProof: Digest.schema };
/** "+ account" */
export const account = { accountPublicKey: AccountNkey.schema, processEpoch: SafeInteger() };
/** "+ serve" */
export const serve = { serveEpoch: SafeInteger() };

/** `Echo`: objects are returned as received. */
export const echo = <K extends string>(kind: K) => ({
  v: Type.Literal(1),
  kind: Type.Literal(kind),
  space: Space.schema,
  owner: Owner.schema,
  actor: Actor.schema,
  instanceId: Uid.schema,
  managerLifecycleUid: Uid.schema,
  requestId: RequestId.schema,
});
/** `Echo*` */
export const provenEcho = <K extends string>(kind: K) => ({ ...echo(kind), ...proof, ...serve });

/** `Material` without what only some operations carry. `lifecycleUid` is the manager's, the times are ms. */
export const material = <O extends string>(operation: O) => ({
  v: Type.Literal(1),
  kind: Type.Literal(SERVICE_AUTHORITY),
  operation: Type.Literal(operation),
  space: Space.schema,
  owner: Owner.schema,
  actor: Actor.schema,
  instanceId: Uid.schema,
  lifecycleUid: Uid.schema,
  requestId: RequestId.schema,
  issuedAt: Millis,
  /** The smallest `exp` of its credentials. */
  expiresAt: Millis,
  actors: Actors,
  identities: Identities,
});

/** Who may ask for what a manager needs; some operations admit a platform supervisor too. */
export const ISSUING_CALLERS = ["human", "manager", "platform"] as const satisfies readonly CallerKind[];
