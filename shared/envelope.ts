/** Request and reply bodies, closed at every level for requests and open for replies (wire §3). */
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { type Json, parseStrict } from "./canonical.ts";
import { AuthorityError, type ErrorDetail, type Outcome } from "./errors.ts";
import { WIRE } from "./limits.ts";
import { Actor, Command, Digest, EndpointLabel, EnvelopeId, Owner, Uid } from "./tokens.ts";

const closed = { additionalProperties: false } as const;
export const SafeInteger = (minimum = 0) => Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER });

export const RequestEnvelope = Type.Object(
  {
    v: Type.Literal(1),
    id: EnvelopeId.schema,
    op: Type.Object(
      {
        endpoint: EndpointLabel.schema,
        command: Command.schema,
        inputDigest: Type.Optional(Digest.schema),
        outputDigest: Type.Optional(Digest.schema),
      },
      closed,
    ),
    class: Type.Union([Type.Literal("ephemeral"), Type.Literal("journal")]),
    replyExpected: Type.Boolean(),
    goalId: Type.Optional(EnvelopeId.schema),
    target: Type.Optional(
      Type.Object(
        {
          owner: Owner.schema,
          actor: Actor.schema,
          lifecycleUid: Uid.schema,
          mappingRevision: Type.Optional(SafeInteger()),
        },
        closed,
      ),
    ),
    bind: Type.Optional(Type.Object({ instanceId: Uid.schema, epoch: SafeInteger() }, closed)),
    args: Type.Optional(Type.Unknown()),
    from: Type.Object(
      {
        id: Type.String({ maxLength: 128 }),
        name: Type.String({ minLength: 1, maxLength: 64 }),
        role: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
      },
      closed,
    ),
    deadlineMs: Type.Optional(SafeInteger(1)),
    correlation: Type.Optional(
      Type.Object(
        {
          traceparent: Type.Optional(Type.String()),
          tracestate: Type.Optional(Type.String({ maxLength: 512 })),
          baggage: Type.Optional(Type.String()),
        },
        closed,
      ),
    ),
    auth: Type.Optional(Type.String({ minLength: 1, maxLength: WIRE.maxAuth })),
  },
  closed,
);
export type EndpointRequest = Static<typeof RequestEnvelope>;

export interface EndpointError {
  readonly code: string;
  readonly message: string;
  readonly outcome: Outcome;
  readonly details?: readonly ErrorDetail[];
}
export type EndpointReply =
  | { readonly v: 1; readonly id: string; readonly ok: true; readonly data?: Json }
  | { readonly v: 1; readonly id: string; readonly ok: false; readonly error: EndpointError };

export type ReplyError = {
  code: string;
  message: string;
  outcome: Outcome;
  details: ({ kind: string } & Record<string, Json>)[];
};
export type ParsedReply = { id: string; ok: true; data: Json } | { id: string; ok: false; error: ReplyError };

const requestCheck = Compile(RequestEnvelope);

const ReplyEnvelope = Compile(
  Type.Object({
    v: Type.Literal(1),
    id: Type.String(),
    ok: Type.Boolean(),
    data: Type.Optional(Type.Unknown()),
    error: Type.Optional(
      Type.Object({
        code: Type.String({ maxLength: 64, pattern: "^[a-z0-9-]+(\\.[a-z0-9-]+)*$" }),
        message: Type.String(),
        outcome: Type.Optional(
          Type.Union([Type.Literal("executed"), Type.Literal("not-executed"), Type.Literal("unknown")]),
        ),
        details: Type.Optional(Type.Array(Type.Object({ kind: Type.String() }))),
      }),
    ),
  }),
);

export type JsonObject = { [key: string]: Json };

/** Check 4 of the road: size, JSON, an object. */
export function parseBody(data: Uint8Array): JsonObject {
  const value = parseStrict(data, { maxBytes: WIRE.maxBody, maxDepth: WIRE.maxDepth });
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new AuthorityError("bad-request", "the body is not a JSON object");
  }
  return value;
}

/** Checks 5 and 6 of the road: the version, then the closed shape and its grammars. */
export function parseEnvelope(body: JsonObject): EndpointRequest {
  if (typeof body.op === "string" || body.v !== 1) {
    throw new AuthorityError("unsupported-version", "this service speaks envelope version 1");
  }
  if (!requestCheck.Check(body)) throw validationError("the envelope is malformed", requestCheck.Errors(body));
  const request = body as EndpointRequest;
  if (request.replyExpected && request.deadlineMs === undefined) {
    throw new AuthorityError("bad-request", "a call needs deadlineMs");
  }
  if (request.goalId !== undefined) throw new AuthorityError("bad-request", "goalId has no place here");
  return request;
}

/** A peer's reply; unknown members are passed over. `undefined` where it is none. */
export function parseReply(data: Uint8Array): ParsedReply | undefined {
  let value: Json;
  try {
    value = parseStrict(data, { maxBytes: 16 * WIRE.maxBody, maxDepth: 2 * WIRE.maxDepth });
  } catch {
    return undefined;
  }
  if (!ReplyEnvelope.Check(value)) return undefined;
  const reply = value as {
    id: string;
    ok: boolean;
    data?: Json;
    error?: { code: string; message: string; outcome?: Outcome; details?: ReplyError["details"] };
  };
  if (reply.ok) return reply.error ? undefined : { id: reply.id, ok: true, data: reply.data ?? null };
  if (!reply.error) return undefined;
  const { code, message, outcome = "unknown", details = [] } = reply.error;
  return { id: reply.id, ok: false, error: { code, message, outcome, details } };
}

interface SchemaError {
  readonly instancePath: string;
  readonly message: string;
}

/** `bad-request` with JSON pointers and rules, never values. */
export function validationError(message: string, errors: Iterable<SchemaError>): AuthorityError {
  const list: { path: string; message: string }[] = [];
  for (const error of errors) {
    if (list.length === WIRE.maxDetails) break;
    list.push({ path: safePath(error.instancePath), message: error.message.slice(0, 120) });
  }
  return new AuthorityError("bad-request", message, { details: [{ kind: "ai.cotal.ep.validation", errors: list }] });
}

/** A pointer may hold a member name that the peer chose. */
export const safePath = (path: string): string => path.replace(/[^A-Za-z0-9_/~.-]/g, "?").slice(0, 128);
