import Type from "typebox";
import { SafeInteger } from "../../../envelope.ts";
import { CUSTODIAN } from "../../../limits.ts";
import { CredentialId, EndpointLabel, Principal, Uid } from "../../../tokens.ts";
import { EXAMPLE, exampleEnvelope } from "../../example.ts";
import { Closed, operation } from "../../operation.ts";
import { Principals, Text } from "../../shapes.ts";
import { echo, Identities, ISSUING_CALLERS, SERVICE_MAINTENANCE, serviceMaintenance } from "../manager-envelope.ts";

const name = "reconcile-registration";

/** An instance's gate (state §3). */
export const EpGate = Closed({
  state: Type.Enum(["open", "frozen", "retired"]),
  generation: SafeInteger(),
  op: Type.Optional(Closed({ opId: Uid.schema, kind: Type.Enum(["registration", "retirement", "takeover"]) })),
  processEpoch: SafeInteger(),
  registrationRevision: SafeInteger(),
  nameAuthorityRevision: SafeInteger(),
  principal: Principal.schema,
});

const Reconciliation = Closed({
  endpoint: EndpointLabel.schema,
  instanceId: Uid.schema,
  holderPrincipal: Principal.schema,
  opId: Uid.schema,
  /** The frozen gate's store revision. */
  freezeToken: SafeInteger(),
  before: EpGate,
  after: EpGate,
  liveness: Closed({ state: Type.Literal("gone"), detail: Text(CUSTODIAN.maxNote, 0) }),
  /** How many rows of the serve family there were. */
  familyRows: SafeInteger(),
  /** The credentials among them that this attempt revoked. */
  revoked: Type.Array(CredentialId.schema, { maxItems: CUSTODIAN.maxTargets }),
  evicted: Principals,
  holders: Principals,
  /** No proof of absence is carried over from an earlier attempt. */
  holdersVerifiedBeforeAttempt: Type.Array(Principal.schema, { maxItems: 0 }),
  holdersVerifiedThisAttempt: Principals,
  holdersRemaining: Principals,
  repairCursorCleanup: Type.Literal("retained"),
  reopenedAtGeneration: SafeInteger(),
});

export const managerMaintainReconcile = operation({
  service: "auth",
  name: "manager-maintain-reconcile",
  summary: "Opens the gate that a dead registrant left frozen, once its whole family is proven gone",
  effect: "write",
  input: Closed(serviceMaintenance(name)),
  output: Closed({
    ...echo(SERVICE_MAINTENANCE),
    operation: Type.Literal(name),
    identities: Identities,
    targetInstanceId: Uid.schema,
    reconciliation: Reconciliation,
  }),
  callers: ISSUING_CALLERS,
  scope: "supervise",
  http: { kind: SERVICE_MAINTENANCE, operation: name },
  errors: ["permission-denied", "failed-precondition", "conflict", "unavailable"],
  example: { ...exampleEnvelope(SERVICE_MAINTENANCE, name), targetInstanceId: EXAMPLE.instanceId },
});
