import type { agentRuntimeStatus } from "../../../shared/contracts/auth/agents/runtime-status.ts";
import type { AuthHandler } from "../visit.ts";
import { refuseRuntime } from "./runtime.ts";

export const handleAgentRuntimeStatus: AuthHandler<typeof agentRuntimeStatus> = refuseRuntime;
