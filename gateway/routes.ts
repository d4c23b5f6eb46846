/** The closed list of routes, and the operation that each one is (identity §11.2). */
import { discovery } from "../shared/contracts/exchange/discovery.ts";
import { exchangeAgent } from "../shared/contracts/exchange/exchange-agent.ts";
import { exchangeUser } from "../shared/contracts/exchange/exchange-user.ts";
import { jwks } from "../shared/contracts/exchange/jwks.ts";
import { operationOfHttp } from "../shared/contracts/http.ts";
import type { Operation } from "../shared/contracts/operation.ts";
import type { JsonObject } from "../shared/envelope.ts";
import { BEARER, GATEWAY } from "../shared/limits.ts";
import type { Face } from "../shared/views.ts";
import { textMember } from "./body.ts";
import { HttpFault } from "./problem.ts";

/** An operation to ask for; its arguments are as they came, since the schema is the service's. */
export interface Forwarded {
  readonly operation: Operation;
  readonly args: unknown;
  /** The identity provider's token, for the `auth` slot. */
  readonly auth?: string;
}

export interface Route {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly faces: readonly Face[];
  /** Without capability and budget; answered by the gateway itself. */
  readonly health?: "live" | "ready";
  readonly cacheControl?: string;
  /** ms from the body's end to the reply. */
  readonly replyMs: number;
  /** Refusals say what became of the request. */
  readonly outcome: boolean;
  readonly forward: (body: JsonObject) => Forwarded;
}

const both = ["public", "loopback"] as const;

const route = (
  given: Pick<Route, "method" | "path" | "forward"> & Partial<Omit<Route, "method" | "path" | "forward">>,
): Route => ({ faces: both, replyMs: GATEWAY.replyMs, outcome: false, ...given });

/** How `/ready` asks whether exchange answers. */
export const probe: Forwarded = { operation: jwks, args: {} };

export const ROUTES: readonly Route[] = [
  route({ method: "GET", path: "/health", health: "live", forward: () => probe }),
  route({ method: "GET", path: "/ready", faces: ["loopback"], health: "ready", forward: () => probe }),
  route({ method: "GET", path: "/jwks", cacheControl: `public, max-age=${BEARER.jwksAgeS}`, forward: () => probe }),
  route({
    method: "GET",
    path: "/.well-known/cotal-mesh",
    cacheControl: `public, max-age=${BEARER.discoveryAgeS}`,
    forward: () => ({ operation: discovery, args: {} }),
  }),
  route({ method: "POST", path: "/exchange", forward: exchange }),
  route({
    method: "POST",
    path: "/manager-service-authority",
    replyMs: GATEWAY.managerReplyMs,
    outcome: true,
    forward: managerAuthority,
  }),
];

/** A login makes it a person's exchange, an agent's token an agent's; with both or neither nobody is meant. */
function exchange(body: JsonObject): Forwarded {
  const person = body.idpToken !== undefined;
  if (person === (body.actorToken !== undefined)) {
    throw new HttpFault(400, "bad-request", "send either idpToken or actorToken");
  }
  if (!person) return { operation: exchangeAgent, args: body };
  const { idpToken: _, ...args } = body;
  return { operation: exchangeUser, args, auth: textMember(body, "idpToken") };
}

/** The gateway map of operations §4: nothing but these two members. */
function managerAuthority(body: JsonObject): Forwarded {
  const { idpToken: _, request, ...rest } = body;
  if (Object.keys(rest).length > 0) throw new HttpFault(400, "bad-request", "send idpToken and request alone");
  return { operation: operationOfHttp(request), args: request, auth: textMember(body, "idpToken") };
}

/** The route of a path and method on a face: exactly, or HTTP's own 404 and 405. */
export function routeOf(face: Face, method: string, target: string): Route {
  const [path = ""] = target.split("?");
  const known = ROUTES.filter((one) => one.path === path && one.faces.includes(face));
  const [first] = known;
  if (!first) throw new HttpFault(404, "not-found", "there is no such route");
  const found = known.find((one) => one.method === method);
  if (!found) throw new HttpFault(405, "bad-request", "this route has another method", { allow: first.method });
  return found;
}
