/** Every operation of `auth` with its handler: the service's one list. */
import { actorGrant } from "../../shared/contracts/auth/actors/actor-grant.ts";
import { actorList } from "../../shared/contracts/auth/actors/actor-list.ts";
import { actorRenew } from "../../shared/contracts/auth/actors/actor-renew.ts";
import { actorRevoke } from "../../shared/contracts/auth/actors/actor-revoke.ts";
import { managerAuthorizeAdmin } from "../../shared/contracts/auth/agents/authorize-admin.ts";
import { agentEnroll } from "../../shared/contracts/auth/agents/enroll.ts";
import { agentPrepareRetirement } from "../../shared/contracts/auth/agents/prepare-retirement.ts";
import { agentRuntimeCreate } from "../../shared/contracts/auth/agents/runtime-create.ts";
import { agentRuntimeStatus } from "../../shared/contracts/auth/agents/runtime-status.ts";
import { managerScanGoals } from "../../shared/contracts/auth/agents/scan-goals.ts";
import { agentValidateRetained } from "../../shared/contracts/auth/agents/validate-retained.ts";
import { instanceRetire } from "../../shared/contracts/auth/assignments/instance-retire.ts";
import { platformAssign } from "../../shared/contracts/auth/assignments/platform-assign.ts";
import { platformControl } from "../../shared/contracts/auth/assignments/platform-control.ts";
import { supervisorAssign } from "../../shared/contracts/auth/assignments/supervisor-assign.ts";
import { supervisorAuthority } from "../../shared/contracts/auth/assignments/supervisor-authority.ts";
import { supervisorEnd } from "../../shared/contracts/auth/assignments/supervisor-end.ts";
import { managerMaintainEvict } from "../../shared/contracts/auth/maintain/evict.ts";
import { managerMaintainReconcile } from "../../shared/contracts/auth/maintain/reconcile.ts";
import { managerActivate } from "../../shared/contracts/auth/manager/activate.ts";
import { managerPrepare } from "../../shared/contracts/auth/manager/prepare.ts";
import { managerRegister } from "../../shared/contracts/auth/manager/register.ts";
import { managerRenew } from "../../shared/contracts/auth/manager/renew.ts";
import { managerRenewRun } from "../../shared/contracts/auth/manager/renew-run.ts";
import { managerRenewStanding } from "../../shared/contracts/auth/manager/renew-standing.ts";
import { managerRetire } from "../../shared/contracts/auth/manager/retire.ts";
import { managerSession } from "../../shared/contracts/auth/manager/session.ts";
import { managerSessionEnd } from "../../shared/contracts/auth/manager/session-end.ts";
import { managerTransferReader } from "../../shared/contracts/auth/manager/transfer-reader.ts";
import { agentRetire } from "../../shared/contracts/auth/retirement/agent-retire.ts";
import { drainAbandon } from "../../shared/contracts/auth/retirement/drain-abandon.ts";
import { retireLifecycle } from "../../shared/contracts/auth/retirement/retire-lifecycle.ts";
import { runAdmit } from "../../shared/contracts/auth/runs/run-admit.ts";
import { runAttempt } from "../../shared/contracts/auth/runs/run-attempt.ts";
import { runOperator } from "../../shared/contracts/auth/runs/run-operator.ts";
import { runRevoke } from "../../shared/contracts/auth/runs/run-revoke.ts";
import type { Operation } from "../../shared/contracts/operation.ts";
import type { Endpoint } from "../host/handler.ts";
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
import type { Inner } from "./assignments/door.ts";
import { handleInstanceRetire } from "./assignments/instance-retire.ts";
import { handlePlatformAssign } from "./assignments/platform-assign.ts";
import { handlePlatformControl } from "./assignments/platform-control.ts";
import { handleSupervisorAssign } from "./assignments/supervisor-assign.ts";
import { handleSupervisorAuthority } from "./assignments/supervisor-authority.ts";
import { handleSupervisorEnd } from "./assignments/supervisor-end.ts";
import type { AuthContext } from "./context.ts";
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
import { type AuthHandler, authEndpoint } from "./visit.ts";

/** A handler bound to its declaration, before there is a context. */
interface Bound extends Inner {
  endpoint(context: AuthContext): Endpoint;
}

const bind = <O extends Operation>(operation: O, handle: AuthHandler<O>): Bound => ({
  operation,
  handle,
  endpoint: (context) => authEndpoint(context, operation, handle),
});

const HANDLERS: readonly Bound[] = [
  bind(runAdmit, handleRunAdmit),
  bind(runRevoke, handleRunRevoke),
  bind(runAttempt, handleRunAttempt),
  bind(runOperator, handleRunOperator),
  bind(managerPrepare, handleManagerPrepare),
  bind(managerRegister, handleManagerRegister),
  bind(managerActivate, handleManagerActivate),
  bind(managerRenew, handleManagerRenew),
  bind(managerTransferReader, handleManagerTransferReader),
  bind(managerRenewStanding, handleManagerRenewStanding),
  bind(managerRenewRun, handleManagerRenewRun),
  bind(managerSession, handleManagerSession),
  bind(managerSessionEnd, handleManagerSessionEnd),
  bind(managerRetire, handleManagerRetire),
  bind(managerMaintainEvict, handleManagerMaintainEvict),
  bind(managerScanGoals, handleManagerScanGoals),
  bind(managerAuthorizeAdmin, handleManagerAuthorizeAdmin),
  bind(agentValidateRetained, handleAgentValidateRetained),
  bind(agentRuntimeCreate, handleAgentRuntimeCreate),
  bind(agentRuntimeStatus, handleAgentRuntimeStatus),
  bind(agentEnroll, handleAgentEnroll),
  bind(agentPrepareRetirement, handleAgentPrepareRetirement),
  bind(actorGrant, handleActorGrant),
  bind(actorRenew, handleActorRenew),
  bind(actorList, handleActorList),
  bind(platformAssign, handlePlatformAssign),
  bind(supervisorAssign, handleSupervisorAssign),
];

/** Their inner requests are those of the list. */
const DOORS: readonly Bound[] = [
  bind(platformControl, handlePlatformControl(HANDLERS)),
  bind(supervisorAuthority, handleSupervisorAuthority(HANDLERS)),
  bind(actorRevoke, handleActorRevoke),
  bind(retireLifecycle, handleRetireLifecycle),
  bind(agentRetire, handleAgentRetire),
  bind(drainAbandon, handleDrainAbandon),
  bind(managerMaintainReconcile, handleManagerMaintainReconcile),
  bind(supervisorEnd, handleSupervisorEnd),
  bind(instanceRetire, handleInstanceRetire),
];

export const authEndpoints = (context: AuthContext): Endpoint[] =>
  [...HANDLERS, ...DOORS].map((bound) => bound.endpoint(context));
