/** What the operator has assigned to an instance (state §3). */
import Type from "typebox";
import { SafeInteger } from "../../../envelope.ts";
import { AccountNkey, PersonOwner, PlatformOwner, RequestId, Space, Uid } from "../../../tokens.ts";
import { Closed } from "../../operation.ts";
import { Millis } from "../../shapes.ts";

const common = {
  v: Type.Literal(1),
  space: Space.schema,
  accountPublicKey: AccountNkey.schema,
  instanceId: Uid.schema,
  /** The manager's. */
  lifecycleUid: Uid.schema,
  /** From 1, one more at each write. */
  assignmentRevision: SafeInteger(1),
};

export const PlatformState = Type.Enum(["assigned", "revoked"]);
export const SupervisorState = Type.Enum(["assigned", "ended"]);

export const PlatformAssignment = Closed({
  ...common,
  kind: Type.Literal("platform-control"),
  owner: PlatformOwner.schema,
  predecessorInstanceId: Type.Optional(Uid.schema),
  state: PlatformState,
});

export const SupervisorAssignment = Closed({
  ...common,
  kind: Type.Literal("platform-supervisor"),
  owner: PersonOwner.schema,
  scope: Type.Array(Type.Literal("supervise"), { minItems: 1, maxItems: 1 }),
  expiresAt: Millis,
  state: SupervisorState,
});

/** What both assigning operations ask for. */
export const assigning = {
  requestId: RequestId.schema,
  instanceId: Uid.schema,
  lifecycleUid: Uid.schema,
  /** The stored revision; 0 where nothing is stored. */
  expectedRevision: SafeInteger(),
};
