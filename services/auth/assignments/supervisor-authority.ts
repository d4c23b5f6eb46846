/** The door of platform supervisors: their host asks for an instance of a person's while the assignment lasts (operations §11). */
import {
  SUPERVISOR_OPERATIONS,
  type supervisorAuthority,
} from "../../../shared/contracts/auth/assignments/supervisor-authority.ts";
import type { Input } from "../../../shared/contracts/operation.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { LIFE } from "../../../shared/limits.ts";
import type { Answered, AuthHandler } from "../visit.ts";
import { type Door, enter } from "./door.ts";

const supervisor: Door<Input<typeof supervisorAuthority>> = {
  holder: "supervisor",
  operations: SUPERVISOR_OPERATIONS,
  refusal: () => new AuthorityError("permission-denied", "a platform supervisor may not ask for this"),
  agrees: async ({ args }, { value }) => value.kind === "platform-supervisor" && value.owner === args.owner,
  async admit({ context }, _inner, _args, assignment) {
    const endsAt = assignment.kind === "platform-supervisor" ? assignment.expiresAt : 0;
    if (endsAt - context.ports.now() < LIFE.minLeftS * 1_000) {
      throw new AuthorityError("expired", "this assignment has run out");
    }
  },
};

export const handleSupervisorAuthority =
  (handlers: readonly Answered[]): AuthHandler<typeof supervisorAuthority> =>
  (visit) =>
    enter(visit, supervisor, handlers);
