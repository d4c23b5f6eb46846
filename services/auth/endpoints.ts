/** Every operation of `auth` as the host serves it. */
import { authApi } from "../../shared/contracts/auth.ts";
import type { Endpoint } from "../host/handler.ts";
import { handlePlatformControl } from "./assignments/platform-control.ts";
import { handleSupervisorAuthority } from "./assignments/supervisor-authority.ts";
import type { AuthContext } from "./context.ts";
import { HANDLERS, type Named } from "./handlers.ts";
import { type Answered, authEndpoint } from "./visit.ts";

const named = Object.keys(HANDLERS) as (keyof Named)[];

/** Behind a door stand the operations that it names. */
const ANSWERED: readonly Answered[] = named.map((name) => ({ operation: authApi[name], handle: HANDLERS[name] }));

const DOORS: readonly Answered[] = [
  { operation: authApi.platformControl, handle: handlePlatformControl(ANSWERED) },
  { operation: authApi.supervisorAuthority, handle: handleSupervisorAuthority(ANSWERED) },
];

export const authEndpoints = (context: AuthContext): Endpoint[] =>
  [...ANSWERED, ...DOORS].map((answered) => authEndpoint(context, answered));
