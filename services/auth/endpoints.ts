/** Every operation of `auth` with its handler. One without the other does not compile. */
import { authApi } from "../../shared/contracts/auth.ts";
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
import { type Answered, type AuthHandler, authEndpoint } from "./visit.ts";

/** The host answers `describe` itself; the doors' requests are answered by the others. */
type Named = Omit<typeof authApi, "describe" | "platformControl" | "supervisorAuthority">;

const HANDLERS: { readonly [N in keyof Named]: AuthHandler<Named[N]> } = {
  runAdmit: handleRunAdmit,
  runRevoke: handleRunRevoke,
  runAttempt: handleRunAttempt,
  runOperator: handleRunOperator,
  managerPrepare: handleManagerPrepare,
  managerRegister: handleManagerRegister,
  managerActivate: handleManagerActivate,
  managerRenew: handleManagerRenew,
  managerTransferReader: handleManagerTransferReader,
  managerRenewStanding: handleManagerRenewStanding,
  managerRenewRun: handleManagerRenewRun,
  managerSession: handleManagerSession,
  managerSessionEnd: handleManagerSessionEnd,
  managerRetire: handleManagerRetire,
  managerMaintainEvict: handleManagerMaintainEvict,
  managerMaintainReconcile: handleManagerMaintainReconcile,
  managerScanGoals: handleManagerScanGoals,
  managerAuthorizeAdmin: handleManagerAuthorizeAdmin,
  agentValidateRetained: handleAgentValidateRetained,
  agentRuntimeCreate: handleAgentRuntimeCreate,
  agentRuntimeStatus: handleAgentRuntimeStatus,
  agentEnroll: handleAgentEnroll,
  agentPrepareRetirement: handleAgentPrepareRetirement,
  retireLifecycle: handleRetireLifecycle,
  agentRetire: handleAgentRetire,
  drainAbandon: handleDrainAbandon,
  actorGrant: handleActorGrant,
  actorRenew: handleActorRenew,
  actorRevoke: handleActorRevoke,
  actorList: handleActorList,
  platformAssign: handlePlatformAssign,
  supervisorAssign: handleSupervisorAssign,
  supervisorEnd: handleSupervisorEnd,
  instanceRetire: handleInstanceRetire,
};

const named = Object.keys(HANDLERS) as (keyof Named)[];

/** Behind a door stand the operations that it names. */
const ANSWERED: readonly Answered[] = named.map((name) => ({ operation: authApi[name], handle: HANDLERS[name] }));

const DOORS: readonly Answered[] = [
  { operation: authApi.platformControl, handle: handlePlatformControl(ANSWERED) },
  { operation: authApi.supervisorAuthority, handle: handleSupervisorAuthority(ANSWERED) },
];

export const authEndpoints = (context: AuthContext): Endpoint[] =>
  [...ANSWERED, ...DOORS].map((answered) => authEndpoint(context, answered));
