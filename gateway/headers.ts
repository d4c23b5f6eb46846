/** The headers of every response, whatever becomes of the request (identity §11.3). */
import type { MiddlewareHandler } from "hono";
import type { Face } from "../shared/views.ts";
import type { GatewayEnv } from "./env.ts";

const ALWAYS = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "content-security-policy": "default-src 'none'",
  "x-frame-options": "DENY",
} as const;
const PUBLIC = { "strict-transport-security": "max-age=31536000" } as const;

export const headersOf = (face: Face): Readonly<Record<string, string>> =>
  face === "public" ? { ...ALWAYS, ...PUBLIC } : ALWAYS;

/** Outermost, so that refusals have them too; a route's own `cache-control` stays. */
export function securityHeaders(face: Face): MiddlewareHandler<GatewayEnv> {
  const headers = Object.entries(headersOf(face));
  return async (context, next) => {
    await next();
    // A body that nobody reads has no time to arrive: with the answer the connection ends.
    if (!context.env.incoming.complete) context.res.headers.set("connection", "close");
    for (const [name, value] of headers) {
      if (!context.res.headers.has(name)) context.res.headers.set(name, value);
    }
  };
}
