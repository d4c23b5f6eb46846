/** The loopback face asks for the capability that its start drew (identity §11.1). */
import { createHash, timingSafeEqual } from "node:crypto";
import type { MiddlewareHandler } from "hono";
import { AuthorityError } from "../shared/errors.ts";
import type { GatewayEnv } from "./env.ts";
import type { Throttle } from "./throttle.ts";

/** `throttle` is a bucket of its own: bad capabilities do not count with bad logins. */
export function capability(cap: string, throttle: Throttle): MiddlewareHandler<GatewayEnv> {
  const expected = hash(`Bearer ${cap}`);
  return async (context, next) => {
    const given = context.env.incoming.headers.authorization ?? "";
    if (!timingSafeEqual(hash(given), expected)) throw throttle.refuse(context.get("peer"), refused());
    await next();
  };
}

const refused = (): AuthorityError =>
  new AuthorityError("unauthenticated", "the capability of this face is missing or wrong", { outcome: "not-executed" });

/** Equal lengths to compare, whatever was sent. */
const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
