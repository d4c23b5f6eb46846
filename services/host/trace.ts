/** The request span: a child of the caller's W3C `traceparent` where that is well formed (wire §3). */
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { Operation } from "../../shared/contracts/operation.ts";
import type { Request } from "./handler.ts";

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

export function requestSpan<T>(operation: Operation, request: Request, run: () => Promise<T>): Promise<T> {
  const parts = TRACEPARENT.exec(request.envelope.correlation?.traceparent ?? "");
  const parent = parts
    ? trace.setSpanContext(ROOT_CONTEXT, {
        traceId: parts[1] ?? "",
        spanId: parts[2] ?? "",
        traceFlags: Number.parseInt(parts[3] ?? "00", 16),
        isRemote: true,
      })
    : ROOT_CONTEXT;
  const span = trace
    .getTracer("mesh-authority")
    .startSpan(operation.capability, { kind: SpanKind.SERVER, attributes: { "rpc.method": operation.name } }, parent);
  return context.with(trace.setSpan(parent, span), async () => {
    try {
      return await run();
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  });
}
