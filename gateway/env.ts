/** What the middlewares of one face share about a request. */
import type { HttpBindings } from "@hono/node-server";
import type { Logger } from "pino";
import type { Ports } from "../shared/ports.ts";
import type { Face } from "../shared/views.ts";
import type { Forwarded, Route } from "./routes.ts";

export interface GatewayEnv {
  Bindings: HttpBindings;
  Variables: {
    route: Route;
    peer: string;
    /** The operation was asked for: only what its service says tells what became of it. */
    sent: boolean;
    /** Of a refusal. */
    code: string;
  };
}

export interface FaceDeps {
  readonly face: Face;
  /** The bound port, which a `Host` must name. */
  readonly port: () => number;
  /** The capability of the loopback face. */
  readonly cap?: string;
  readonly trustedProxy: boolean;
  /** Asks the service. Refusals are thrown as `AuthorityError`. */
  readonly ask: (forwarded: Forwarded, deadlineMs: number) => Promise<unknown>;
  /** Whether the connection to the broker is up. */
  readonly connected: () => boolean;
  readonly draining: () => boolean;
  readonly ports: Ports;
  readonly log: Logger;
}
