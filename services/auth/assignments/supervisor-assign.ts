/** Assigns a person's instance to a platform supervisor for a time (operations §11). */
import type { supervisorAssign } from "../../../shared/contracts/auth/assignments/supervisor-assign.ts";
import type { Input } from "../../../shared/contracts/operation.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { ASSIGNMENT, LIFE } from "../../../shared/limits.ts";
import type { Assignment } from "../../../shared/rows/assignment.ts";
import type { AuthHandler } from "../visit.ts";
import { type Assigning, assign } from "./assign.ts";

type Args = Input<typeof supervisorAssign>;
type SupervisorAssignment = Extract<Assignment, { kind: "platform-supervisor" }>;

const supervisor: Assigning<SupervisorAssignment, Args> = {
  row: ({ args: { owner, expiresAt, state } }, common) => ({
    ...common,
    kind: "platform-supervisor",
    owner,
    scope: ["supervise"],
    expiresAt,
    state,
  }),
  async admit({ context }, { state, expiresAt }) {
    const aheadMs = expiresAt - context.ports.now();
    if (state === "assigned" && (aheadMs <= LIFE.minLeftS * 1_000 || aheadMs > ASSIGNMENT.maxAheadMs)) {
      throw new AuthorityError("bad-request", "expiresAt must be more than 5 s and at most 30 days ahead");
    }
    return [];
  },
};

export const handleSupervisorAssign: AuthHandler<typeof supervisorAssign> = async (visit) => ({
  requestId: visit.args.requestId,
  assignment: await assign(visit, supervisor),
});
