/** The platform's door: its host asks for the assigned instance (operations §11). */

import {
  PLATFORM_OPERATIONS,
  type platformControl,
} from "../../../shared/contracts/auth/assignments/platform-control.ts";
import { managerMaintainEvict } from "../../../shared/contracts/auth/maintain/evict.ts";
import { managerMaintainReconcile } from "../../../shared/contracts/auth/maintain/reconcile.ts";
import { managerActivate } from "../../../shared/contracts/auth/manager/activate.ts";
import { managerPrepare } from "../../../shared/contracts/auth/manager/prepare.ts";
import type { Input, Operation } from "../../../shared/contracts/operation.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { currentRows } from "../../../shared/rows/assignment.ts";
import type { Answered, AuthHandler } from "../visit.ts";
import { type Door, enter } from "./door.ts";
import { assertPredecessorGone } from "./predecessor.ts";

const MAINTENANCE: readonly Operation[] = [managerMaintainEvict, managerMaintainReconcile];
/** What makes an instance serve. */
const STARTING: readonly Operation[] = [managerPrepare, managerActivate];
/** Kinds of agents that a person's manager hosts; the platform's hosts none. */
const AGENTS = /^manager-managed-agent-/;

const platform: Door<Input<typeof platformControl>> = {
  holder: "platform",
  operations: PLATFORM_OPERATIONS,
  refusal(request) {
    const { kind } = (request ?? {}) as { kind?: unknown };
    return typeof kind === "string" && AGENTS.test(kind)
      ? new AuthorityError("unimplemented", "the platform hosts no agents")
      : new AuthorityError("bad-request", "this request has no place behind the platform's door");
  },
  /** Of the account's assignments only one is the platform's. */
  async agrees({ context, work }, { value }) {
    if (value.kind !== "platform-control") return false;
    const current = (await context.store.read(currentRows.key({}), work))?.value;
    return current?.instanceId === value.instanceId && current.assignmentRevision === value.assignmentRevision;
  },
  async admit(visit, inner, { instanceId, targetInstanceId }, assignment) {
    if (MAINTENANCE.includes(inner) && targetInstanceId !== instanceId) {
      throw new AuthorityError("permission-denied", "the platform maintains its assigned instance alone");
    }
    if (STARTING.includes(inner)) await assertPredecessorGone(visit, assignment);
  },
};

export const handlePlatformControl =
  (handlers: readonly Answered[]): AuthHandler<typeof platformControl> =>
  (visit) =>
    enter(visit, platform, handlers);
