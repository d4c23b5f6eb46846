/** Assigns an instance to the platform: at most one of the account's is not revoked (operations §11). */
import type { platformAssign } from "../../../shared/contracts/auth/assignments/platform-assign.ts";
import type { Input } from "../../../shared/contracts/operation.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { type Assignment, assignmentRows, currentRows } from "../../../shared/rows/assignment.ts";
import { create, type Message, swap } from "../../../shared/store/message.ts";
import type { AuthHandler, Visit } from "../visit.ts";
import { type Assigning, assign } from "./assign.ts";

type Args = Input<typeof platformAssign>;
type PlatformAssignment = Extract<Assignment, { kind: "platform-control" }>;

const platform: Assigning<PlatformAssignment, Args> = {
  row: ({ args: { owner, predecessorInstanceId, state } }, common) => ({
    ...common,
    kind: "platform-control",
    owner,
    ...(predecessorInstanceId === undefined ? {} : { predecessorInstanceId }),
    state,
  }),
  admit: becomeCurrent,
};

export const handlePlatformAssign: AuthHandler<typeof platformAssign> = async (visit) => ({
  requestId: visit.args.requestId,
  assignment: await assign(visit, platform),
});

/** The account's one platform assignment moves on only from an instance that is revoked, which is for good. */
async function becomeCurrent(
  { context, work }: Visit<Args>,
  { instanceId, assignmentRevision }: PlatformAssignment,
): Promise<Message[]> {
  const current = await context.store.read(currentRows.key({}), work);
  const value = { v: 1 as const, instanceId, assignmentRevision };
  if (!current) return [create(currentRows.key({}), value)];
  if (current.value.instanceId !== instanceId) {
    const former = await context.store.read(assignmentRows.key({ instanceId: current.value.instanceId }), work);
    if (former?.value.state !== "revoked") {
      throw new AuthorityError("failed-precondition", "another instance is assigned to the platform, revoke it first");
    }
  }
  return [swap(current, value)];
}
