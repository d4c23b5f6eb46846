/** One face of the gateway: a list of middlewares around a list of routes. It decides nothing (identity §11). */
import { type Context, Hono, type MiddlewareHandler } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { isSilence } from "../shared/client.ts";
import { AuthorityError, isAuthorityError, textOf, unavailable } from "../shared/errors.ts";
import { GATEWAY } from "../shared/limits.ts";
import { readObject } from "./body.ts";
import { Budget } from "./budget.ts";
import { capability } from "./capability.ts";
import type { FaceDeps, GatewayEnv } from "./env.ts";
import { ownDoor, withPeer } from "./face.ts";
import { securityHeaders } from "./headers.ts";
import { problemOf } from "./problem.ts";
import { probe, type Route, routeOf } from "./routes.ts";
import { Throttle } from "./throttle.ts";

type Handle = (context: Context<GatewayEnv>) => Promise<Response>;

export function faceApp(deps: FaceDeps): Hono<GatewayEnv> {
  const app = new Hono<GatewayEnv>();
  app.use(requestLog(deps), securityHeaders(deps.face), withPeer(deps), ownDoor(deps));
  if (deps.cap !== undefined) app.use(exceptHealth(capability(deps.cap, new Throttle(deps.ports))));
  app.use(exactRoute(deps), serving(deps));
  const forwarding = forward(deps, new Budget(), new Throttle(deps.ports));
  const health: Record<NonNullable<Route["health"]>, Handle> = {
    live: async (context) => context.json({ status: "ok" }),
    ready: ready(deps),
  };
  app.all("*", (context) => {
    const { health: own } = context.get("route");
    return own ? health[own](context) : forwarding(context);
  });
  app.onError((error, context) => {
    const outcome = context.get("sent") ? "unknown" : "not-executed";
    const problem = problemOf(error, context.get("route")?.outcome ? outcome : undefined);
    context.set("code", problem.body.code);
    if (problem.body.code === "internal") deps.log.error({ err: error.stack ?? textOf(error) }, "internal error");
    return context.json(problem.body, problem.status as ContentfulStatusCode, problem.headers);
  });
  return app;
}

/** The path as it was sent: nothing is decoded or normalised on the way to a route. */
const exactRoute = ({ face }: FaceDeps): MiddlewareHandler<GatewayEnv> =>
  async function exactRoute(context, next) {
    const { method = "", url = "" } = context.env.incoming;
    context.set("route", routeOf(face, method, url));
    await next();
  };

const exceptHealth =
  (middleware: MiddlewareHandler<GatewayEnv>): MiddlewareHandler<GatewayEnv> =>
  async (context, next) => {
    const [path] = (context.env.incoming.url ?? "").split("?");
    return path === "/health" || path === "/ready" ? next() : middleware(context, next);
  };

/** While it stops, a face only says that it lives. */
const serving = ({ draining }: FaceDeps): MiddlewareHandler<GatewayEnv> =>
  async function serving(context, next) {
    if (draining() && context.get("route").health !== "live") {
      context.header("connection", "close");
      throw new AuthorityError("unavailable", "this gateway is stopping, ask again", { outcome: "not-executed" });
    }
    await next();
  };

/** From the request to the operation and back. */
function forward({ ask, ports }: FaceDeps, budget: Budget, throttle: Throttle): Handle {
  return async (context) => {
    const route = context.get("route");
    const peer = context.get("peer");
    const seat = budget.seat(peer);
    try {
      const body = route.method === "POST" ? await readObject(context.env.incoming, ports) : {};
      seat.enterFlight();
      const forwarded = route.forward(body);
      context.set("sent", true);
      const data = await inTime(ask(forwarded, route.replyMs));
      if (route.cacheControl !== undefined) context.header("cache-control", route.cacheControl);
      return context.json(data as object);
    } catch (error) {
      throw isAuthorityError(error, "unauthenticated") ? throttle.refuse(peer, error) : error;
    } finally {
      seat.release();
    }
  };
}

/** Silence until the deadline is what the deadline says, not a service that is away. */
async function inTime<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!isSilence(error)) throw error;
    throw new AuthorityError("deadline-exceeded", "no answer in time", { outcome: "unknown", cause: error });
  }
}

/** Connected, and exchange answers; those who ask meanwhile share one question. */
function ready({ ask, connected }: FaceDeps): Handle {
  let asking: Promise<unknown> | undefined;
  return async (context) => {
    if (!connected()) throw unavailable("no broker", undefined, "not-executed");
    asking ??= ask(probe, GATEWAY.readyMs).finally(() => {
      asking = undefined;
    });
    try {
      await asking;
    } catch (cause) {
      throw unavailable(`exchange: ${textOf(cause)}`, cause, "not-executed");
    }
    return context.json({ ready: true });
  };
}

/** One line per request; neither bodies nor headers, which carry tokens. */
const requestLog = ({ face, ports, log }: FaceDeps): MiddlewareHandler<GatewayEnv> =>
  async function requestLog(context, next) {
    const arrived = ports.monotonic();
    await next();
    log.info(
      {
        face,
        method: context.env.incoming.method,
        path: context.get("route")?.path,
        peer: context.get("peer"),
        status: context.res.status,
        code: context.get("code") ?? "ok",
        ms: Math.round(ports.monotonic() - arrived),
      },
      "http",
    );
  };
