/** The operations of `auth` (operations). */
import { actorGrant } from "./auth/actors/actor-grant.ts";
import { actorList } from "./auth/actors/actor-list.ts";
import { authDescribe } from "./auth/describe.ts";
import { managerActivate } from "./auth/manager/activate.ts";
import { managerPrepare } from "./auth/manager/prepare.ts";
import { managerRegister } from "./auth/manager/register.ts";
import { runAdmit } from "./auth/runs/run-admit.ts";
import { runAttempt } from "./auth/runs/run-attempt.ts";
import { runRevoke } from "./auth/runs/run-revoke.ts";
import { contractSet } from "./operation.ts";

export const authOperations = [
  runAdmit,
  runRevoke,
  runAttempt,
  managerPrepare,
  managerRegister,
  managerActivate,
  actorGrant,
  actorList,
  authDescribe,
] as const;

export const authContracts = contractSet("ai.cotal.auth", authOperations);
