/** The operations of `auth`. Made by `npm run docs`. */
import { actorGrant } from "./auth/actors/actor-grant.ts";
import { actorList } from "./auth/actors/actor-list.ts";
import { actorRenew } from "./auth/actors/actor-renew.ts";
import { actorRevoke } from "./auth/actors/actor-revoke.ts";
import { managerAuthorizeAdmin } from "./auth/agents/authorize-admin.ts";
import { agentEnroll } from "./auth/agents/enroll.ts";
import { agentPrepareRetirement } from "./auth/agents/prepare-retirement.ts";
import { agentRuntimeCreate } from "./auth/agents/runtime-create.ts";
import { agentRuntimeStatus } from "./auth/agents/runtime-status.ts";
import { managerScanGoals } from "./auth/agents/scan-goals.ts";
import { agentValidateRetained } from "./auth/agents/validate-retained.ts";
import { instanceRetire } from "./auth/assignments/instance-retire.ts";
import { platformAssign } from "./auth/assignments/platform-assign.ts";
import { platformControl } from "./auth/assignments/platform-control.ts";
import { supervisorAssign } from "./auth/assignments/supervisor-assign.ts";
import { supervisorAuthority } from "./auth/assignments/supervisor-authority.ts";
import { supervisorEnd } from "./auth/assignments/supervisor-end.ts";
import { authDescribe } from "./auth/describe.ts";
import { managerMaintainEvict } from "./auth/maintain/evict.ts";
import { managerMaintainReconcile } from "./auth/maintain/reconcile.ts";
import { managerActivate } from "./auth/manager/activate.ts";
import { managerPrepare } from "./auth/manager/prepare.ts";
import { managerRegister } from "./auth/manager/register.ts";
import { managerRenew } from "./auth/manager/renew.ts";
import { managerRenewRun } from "./auth/manager/renew-run.ts";
import { managerRenewStanding } from "./auth/manager/renew-standing.ts";
import { managerRetire } from "./auth/manager/retire.ts";
import { managerSession } from "./auth/manager/session.ts";
import { managerSessionEnd } from "./auth/manager/session-end.ts";
import { managerTransferReader } from "./auth/manager/transfer-reader.ts";
import { agentRetire } from "./auth/retirement/agent-retire.ts";
import { drainAbandon } from "./auth/retirement/drain-abandon.ts";
import { retireLifecycle } from "./auth/retirement/retire-lifecycle.ts";
import { runAdmit } from "./auth/runs/run-admit.ts";
import { runAttempt } from "./auth/runs/run-attempt.ts";
import { runOperator } from "./auth/runs/run-operator.ts";
import { runRevoke } from "./auth/runs/run-revoke.ts";
import { contractSet, type Operation } from "./operation.ts";

/** By the name under which a client of the authority calls it. */
export const authApi = {
  actorGrant,
  actorList,
  actorRenew,
  actorRevoke,
  managerAuthorizeAdmin,
  agentEnroll,
  agentPrepareRetirement,
  agentRuntimeCreate,
  agentRuntimeStatus,
  managerScanGoals,
  agentValidateRetained,
  instanceRetire,
  platformAssign,
  platformControl,
  supervisorAssign,
  supervisorAuthority,
  supervisorEnd,
  describe: authDescribe,
  managerMaintainEvict,
  managerMaintainReconcile,
  managerActivate,
  managerPrepare,
  managerRegister,
  managerRenew,
  managerRenewRun,
  managerRenewStanding,
  managerRetire,
  managerSession,
  managerSessionEnd,
  managerTransferReader,
  agentRetire,
  drainAbandon,
  retireLifecycle,
  runAdmit,
  runAttempt,
  runOperator,
  runRevoke,
} as const;

export const authOperations: readonly Operation[] = Object.values(authApi);

export const authContracts = contractSet("ai.cotal.auth", authOperations);
