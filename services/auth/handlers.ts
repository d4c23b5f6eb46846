/** Who answers which operation of `auth`; one without the other does not compile. Made by `npm run docs`. */
import type { authApi } from "../../shared/contracts/auth.ts";
import { handleActorGrant } from "./actors/actor-grant.ts";
import { handleActorList } from "./actors/actor-list.ts";
import { handleActorRenew } from "./actors/actor-renew.ts";
import { handleActorRevoke } from "./actors/actor-revoke.ts";
import { handleManagerAuthorizeAdmin } from "./agents/authorize-admin.ts";
import { handleAgentEnroll } from "./agents/enroll.ts";
import { handleAgentPrepareRetirement } from "./agents/prepare-retirement.ts";
import { handleAgentRuntimeCreate } from "./agents/runtime-create.ts";
import { handleAgentRuntimeStatus } from "./agents/runtime-status.ts";
import { handleManagerScanGoals } from "./agents/scan-goals.ts";
import { handleAgentValidateRetained } from "./agents/validate-retained.ts";
import { handleInstanceRetire } from "./assignments/instance-retire.ts";
import { handlePlatformAssign } from "./assignments/platform-assign.ts";
import { handleSupervisorAssign } from "./assignments/supervisor-assign.ts";
import { handleSupervisorEnd } from "./assignments/supervisor-end.ts";
import { handleManagerMaintainEvict } from "./maintain/evict.ts";
import { handleManagerMaintainReconcile } from "./maintain/reconcile.ts";
import { handleManagerActivate } from "./manager/activate.ts";
import { handleManagerPrepare } from "./manager/prepare.ts";
import { handleManagerRegister } from "./manager/register.ts";
import { handleManagerRenew } from "./manager/renew.ts";
import { handleManagerRenewRun } from "./manager/renew-run.ts";
import { handleManagerRenewStanding } from "./manager/renew-standing.ts";
import { handleManagerRetire } from "./manager/retire.ts";
import { handleManagerSession } from "./manager/session.ts";
import { handleManagerSessionEnd } from "./manager/session-end.ts";
import { handleManagerTransferReader } from "./manager/transfer-reader.ts";
import { handleAgentRetire } from "./retirement/agent-retire.ts";
import { handleDrainAbandon } from "./retirement/drain-abandon.ts";
import { handleRetireLifecycle } from "./retirement/retire-lifecycle.ts";
import { handleRunAdmit } from "./runs/run-admit.ts";
import { handleRunAttempt } from "./runs/run-attempt.ts";
import { handleRunOperator } from "./runs/run-operator.ts";
import { handleRunRevoke } from "./runs/run-revoke.ts";
import type { AuthHandler } from "./visit.ts";

/** The host answers `describe` itself; the doors' requests are answered by the others. */
export type Named = Omit<typeof authApi, "describe" | "platformControl" | "supervisorAuthority">;

export const HANDLERS: { readonly [N in keyof Named]: AuthHandler<Named[N]> } = {
  actorGrant: handleActorGrant,
  actorList: handleActorList,
  actorRenew: handleActorRenew,
  actorRevoke: handleActorRevoke,
  managerAuthorizeAdmin: handleManagerAuthorizeAdmin,
  agentEnroll: handleAgentEnroll,
  agentPrepareRetirement: handleAgentPrepareRetirement,
  agentRuntimeCreate: handleAgentRuntimeCreate,
  agentRuntimeStatus: handleAgentRuntimeStatus,
  managerScanGoals: handleManagerScanGoals,
  agentValidateRetained: handleAgentValidateRetained,
  instanceRetire: handleInstanceRetire,
  platformAssign: handlePlatformAssign,
  supervisorAssign: handleSupervisorAssign,
  supervisorEnd: handleSupervisorEnd,
  managerMaintainEvict: handleManagerMaintainEvict,
  managerMaintainReconcile: handleManagerMaintainReconcile,
  managerActivate: handleManagerActivate,
  managerPrepare: handleManagerPrepare,
  managerRegister: handleManagerRegister,
  managerRenew: handleManagerRenew,
  managerRenewRun: handleManagerRenewRun,
  managerRenewStanding: handleManagerRenewStanding,
  managerRetire: handleManagerRetire,
  managerSession: handleManagerSession,
  managerSessionEnd: handleManagerSessionEnd,
  managerTransferReader: handleManagerTransferReader,
  agentRetire: handleAgentRetire,
  drainAbandon: handleDrainAbandon,
  retireLifecycle: handleRetireLifecycle,
  runAdmit: handleRunAdmit,
  runAttempt: handleRunAttempt,
  runOperator: handleRunOperator,
  runRevoke: handleRunRevoke,
};
