/** Writes the one reply of a request: envelope, micro error headers, and where it goes (wire §4, §5). */
import { headers, type MsgHdrs } from "@nats-io/nats-core";
import type { Json } from "../../shared/canonical.ts";
import type { EndpointReply } from "../../shared/envelope.ts";
import { AuthorityError, type ErrorDetail, headerText, internal, type Outcome } from "../../shared/errors.ts";
import { WIRE } from "../../shared/limits.ts";
import { replyRail } from "../../shared/subjects.ts";
import { EnvelopeId } from "../../shared/tokens.ts";
import type { Passage } from "./road.ts";

export interface Refusal {
  readonly code: AuthorityError["code"];
  readonly number: number;
  readonly message: string;
  readonly outcome: Outcome;
  readonly details: readonly ErrorDetail[];
}

/** Anything thrown becomes a catalogued refusal; what is not one is `internal`, with the request's id and nothing else. */
export function refusalOf(error: unknown, outcome: Outcome, requestId: string): Refusal {
  const known = error instanceof AuthorityError ? error : internal("uncatalogued", error);
  const message = known.code === "internal" ? headerText(`internal error, request ${requestId}`) : known.message;
  return {
    code: known.code,
    number: known.number,
    message,
    outcome: known.outcome ?? outcome,
    details: boundedDetails(known.details),
  };
}

function boundedDetails(details: readonly ErrorDetail[]): readonly ErrorDetail[] {
  const kept = details.slice(0, WIRE.maxDetails);
  while (kept.length > 0 && Buffer.byteLength(JSON.stringify(kept)) > WIRE.maxDetailBytes) kept.pop();
  return kept;
}

/** The id to answer under: the envelope's own where it is usable, else `-`. */
export function answerId(passage: Passage): string {
  const id = passage.envelope?.id ?? passage.body?.id;
  return EnvelopeId.is(id) ? id : "-";
}

/** Where the reply goes, or `undefined` where none may be sent. */
export function replyTarget(passage: Passage): string | undefined {
  const { message, envelope, subject, signs } = passage;
  if (envelope?.replyExpected === false || (!envelope && passage.body?.replyExpected === false)) return undefined;
  if (message.reply !== "") return message.reply;
  // Without an inbox only a readable envelope says that this is a call.
  return envelope && subject ? replyRail(subject, signs.incarnation) : undefined;
}

export interface Encoded {
  readonly data: Uint8Array;
  readonly headers?: MsgHdrs;
}

const encode = (reply: EndpointReply): Uint8Array => new TextEncoder().encode(JSON.stringify(reply));

export function encodeSuccess(id: string, data: Json, maxPayload: number): Encoded {
  const bytes = encode({ v: 1, id, ok: true, data });
  if (bytes.length > maxPayload)
    throw new AuthorityError("resource-exhausted", "the reply is larger than the broker admits");
  return { data: bytes };
}

export function encodeRefusal(id: string, refusal: Refusal): Encoded {
  const { code, number, message, outcome, details } = refusal;
  const head = headers();
  head.set("Nats-Service-Error", headerText(`${code}: ${message}`));
  head.set("Nats-Service-Error-Code", String(number));
  const error = { code, message, outcome, ...(details.length > 0 ? { details } : {}) };
  return { data: encode({ v: 1, id, ok: false, error }), headers: head };
}
