/** The HTTP server of one face: bound to loopback, bounded in sockets and time (identity §11.3). */
import { once } from "node:events";
import { createServer, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import { textOf } from "../shared/errors.ts";
import { GATEWAY, STOP } from "../shared/limits.ts";
import type { FaceDeps, GatewayEnv } from "./env.ts";
import { headersOf } from "./headers.ts";

const ADDRESS = "127.0.0.1";

export interface FaceServer {
  readonly port: number;
  /** No new connection; what runs finishes within its limit. Repeatable. */
  close(): Promise<void>;
}

/** Listens; `port` 0 takes any free one. `unavailable` ports reject as Node says it. */
export async function listen(
  app: Hono<GatewayEnv>,
  port: number,
  { face, ports, log }: Pick<FaceDeps, "face" | "ports" | "log">,
): Promise<FaceServer> {
  const headers = headersOf(face);
  const listener = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    // A request line or Host that no URL can be made of never reaches the app.
    errorHandler: (error) => {
      log.warn({ face, err: textOf(error) }, "malformed request");
      return Response.json(
        { error: "malformed request", code: "bad-request" },
        { status: 400, headers: { ...headers, connection: "close" } },
      );
    },
  });
  const server = createServer(
    {
      headersTimeout: GATEWAY.headMs,
      requestTimeout: 0, // a body's time is bounded where it is read; one that is not read ends its connection
      connectionsCheckingInterval: GATEWAY.checkMs,
    },
    (incoming, outgoing) => void listener(incoming, outgoing),
  );
  // Node's own answer to an expectation would have none of our headers, and wait for the body.
  server.on("checkExpectation", (incoming, outgoing) => void listener(incoming, outgoing));
  server.maxConnections = GATEWAY.sockets;
  server.on("clientError", (error: Error & { code?: string }, socket) => {
    refuseRaw(socket, error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? 408 : 400, headers);
  });
  server.listen(port, ADDRESS);
  await once(server, "listening");
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new TypeError("no port was bound");

  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    const ended = new Promise<void>((resolve) => server.close(() => resolve())); // idle connections end at once
    const stop = new AbortController();
    const late = ports.sleep(STOP.gatewayFinishMs, stop.signal).then(
      () => server.closeAllConnections(),
      () => {},
    );
    await ended;
    stop.abort();
    await late;
  };
  return {
    port: bound.port,
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

/** What Node's parser refused has no request; the answer looks like every other one. */
function refuseRaw(socket: Duplex, status: 400 | 408, headers: Readonly<Record<string, string>>): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const body = JSON.stringify({ error: "malformed request", code: "bad-request" });
  const lines = Object.entries({ ...headers, "content-type": "application/json", connection: "close" });
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      ...lines.map(([name, value]) => `${name}: ${value}`),
      `content-length: ${Buffer.byteLength(body)}`,
      "",
      body,
    ].join("\r\n"),
  );
}
