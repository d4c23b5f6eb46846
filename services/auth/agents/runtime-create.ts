import type { agentRuntimeCreate } from "../../../shared/contracts/auth/agents/runtime-create.ts";
import type { AuthHandler } from "../visit.ts";
import { refuseRuntime } from "./runtime.ts";

export const handleAgentRuntimeCreate: AuthHandler<typeof agentRuntimeCreate> = refuseRuntime;
