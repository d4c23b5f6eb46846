/** Who is asking, and whether through this door: `Host`, `Origin`, peer address (identity §11.1, §11.3). */
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { MiddlewareHandler } from "hono";
import { AuthorityError } from "../shared/errors.ts";
import type { FaceDeps, GatewayEnv } from "./env.ts";

/** A page elsewhere reaches loopback under a name of its own, and sends an `Origin` with what it posts. */
export function ownDoor({ face, port }: Pick<FaceDeps, "face" | "port">): MiddlewareHandler<GatewayEnv> {
  return async ({ env: { incoming } }, next) => {
    if (face === "loopback" && !isLoopbackHost(incoming.headers.host ?? "", port())) throw denied("a foreign Host");
    if (incoming.method === "POST" && incoming.headers.origin !== undefined) throw denied("a POST with Origin");
    await next();
  };
}

const denied = (what: string): AuthorityError =>
  new AuthorityError("permission-denied", `${what} is not served here`, { outcome: "not-executed" });

function isLoopbackHost(host: string, port: number): boolean {
  const [, name, given] = /^(\[::1\]|[^:[\]]+):(\d{1,5})$/.exec(host) ?? [];
  if (name === undefined || Number(given) !== port) return false;
  return name.toLowerCase() === "localhost" || isLoopback(name.replace(/[[\]]/g, ""));
}

export const isLoopback = (address: string): boolean =>
  address === "::1" || (isIP(address) === 4 && address.startsWith("127."));

export function withPeer({ trustedProxy }: Pick<FaceDeps, "trustedProxy">): MiddlewareHandler<GatewayEnv> {
  return async (context, next) => {
    context.set("peer", peerOf(context.env.incoming, trustedProxy));
    await next();
  };
}

/** The socket's address; behind a trusted proxy the hop that it added last. No other forwarding header is read. */
function peerOf(incoming: Pick<IncomingMessage, "headers" | "socket">, trustedProxy: boolean): string {
  const socket = plain(incoming.socket.remoteAddress ?? "");
  if (!trustedProxy) return socket;
  const header = incoming.headers["x-forwarded-for"];
  const last = (Array.isArray(header) ? header.join(",") : (header ?? "")).split(",").at(-1)?.trim() ?? "";
  return isIP(last) === 0 ? socket : plain(last);
}

/** One spelling per address: an IPv4 one may come as IPv6. */
const plain = (address: string): string => address.toLowerCase().replace(/^::ffff:(?=\d+\.)/, "");
