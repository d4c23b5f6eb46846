/** `assignment.<iid>` and `assignment.platform`: instances given to the platform or to a supervisor (state §3). */
import Type, { type Static } from "typebox";
import { AccountNkey, PersonOwner, PlatformOwner, Space, Uid } from "../tokens.ts";
import { family } from "./family.ts";
import { Count, closed, Ms, oneOf } from "./members.ts";

const Revision = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const common = {
  v: Type.Literal(1),
  space: Space.schema,
  accountPublicKey: AccountNkey.schema,
  instanceId: Uid.schema,
  /** The manager's. */
  lifecycleUid: Uid.schema,
  /** From 1, one more at each write. */
  assignmentRevision: Revision,
};
const AssignmentRow = Type.Union([
  closed({
    ...common,
    kind: Type.Literal("platform-control"),
    owner: PlatformOwner.schema,
    predecessorInstanceId: Type.Optional(Uid.schema),
    state: oneOf("assigned", "revoked"),
  }),
  closed({
    ...common,
    kind: Type.Literal("platform-supervisor"),
    owner: PersonOwner.schema,
    scope: Type.Tuple([Type.Literal("supervise")]),
    expiresAt: Ms,
    state: oneOf("assigned", "ended"),
  }),
]);
export type Assignment = Static<typeof AssignmentRow>;

export const assignmentRows = family({
  stream: "auth",
  pattern: "assignment.{instanceId}",
  parts: { instanceId: Uid },
  schema: AssignmentRow,
  agrees: (row, key) => row.instanceId === key.instanceId,
  admits: (from, to) =>
    from === undefined
      ? to.assignmentRevision === 1
      : from.state === "assigned" &&
        from.kind === to.kind &&
        from.owner === to.owner &&
        to.assignmentRevision === from.assignmentRevision + 1,
  passes: (key) => key === "assignment.platform",
});

const CurrentRow = closed({ v: Type.Literal(1), instanceId: Uid.schema, assignmentRevision: Count });
/** The account's one platform assignment. */
export type Current = Static<typeof CurrentRow>;

export const currentRows = family({
  stream: "auth",
  pattern: "assignment.platform",
  parts: {},
  schema: CurrentRow,
});
