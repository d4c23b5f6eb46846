/**
 * Prometheus metrics of this process, served on loopback where asked for. One metric has always the same labels, and
 * no label has a value that a caller chooses.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export const registry = new Registry();

/** Every request that was answered, refused or dropped. */
const requests = new Counter({
  name: "authority_requests_total",
  help: "Requests by service, operation and code (ok, an error code, or dropped)",
  labelNames: ["service", "op", "code"],
  registers: [registry],
});

const requestSeconds = new Histogram({
  name: "authority_request_seconds",
  help: "Seconds from delivery to reply",
  labelNames: ["service", "op"],
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60],
  registers: [registry],
});

/** `code` is `ok`, an error code, or `dropped`. */
export function countRequest({ service, name: op }: { service: string; name: string }, code: string, ms: number): void {
  requests.inc({ service, op, code });
  requestSeconds.observe({ service, op }, ms / 1_000);
}

export const ready = new Gauge({
  name: "authority_ready",
  help: "1 while this process serves",
  registers: [registry],
});

export interface MetricsFace {
  readonly port: number;
  close(): Promise<void>;
}

/** `GET /metrics` on 127.0.0.1; 0 is any free port. Rejects where the port is taken. */
export async function serveMetrics(port: number): Promise<MetricsFace> {
  collectDefaultMetrics({ register: registry });
  const server = createServer(async (request, response) => {
    if (request.method !== "GET" || request.url !== "/metrics") {
      response.writeHead(404).end();
      return;
    }
    const text = await registry.metrics();
    response.writeHead(200, { "content-type": registry.contentType }).end(text);
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
