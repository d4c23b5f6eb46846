/** One delivered message from arrival to reply: the road, the handler, the outcome, the counters, the log line. */
import type { Logger } from "pino";
import type { Validator } from "typebox/compile";
import type { Json } from "../../shared/canonical.ts";
import type { EndpointRequest } from "../../shared/envelope.ts";
import { AuthorityError, internal, textOf } from "../../shared/errors.ts";
import { WIRE } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";
import { Effects, type Work } from "../../shared/work.ts";
import { countRequest } from "../metrics.ts";
import type { Endpoint, Request } from "./handler.ts";
import { answerId, type Encoded, encodeRefusal, encodeSuccess, refusalOf, replyTarget } from "./reply.ts";
import { Dropped, type Incoming, type Passage, type RoadSigns, walk } from "./road.ts";
import type { EndpointStatistics } from "./statistics.ts";
import { requestSpan } from "./trace.ts";

export interface Answering {
  readonly endpoint: Endpoint;
  readonly signs: RoadSigns;
  readonly output: Validator;
  readonly statistics: EndpointStatistics;
  readonly ports: Ports;
  readonly log: Logger;
  /** Refuses callers that the operation does not admit. */
  readonly admit?: (request: Request) => Promise<void>;
  /** Aborts when the service gives up what is still running. */
  readonly stopping: AbortSignal;
  maxPayload(): number;
  send(target: string, reply: Encoded): void;
}

interface Settled {
  readonly reply: Encoded;
  readonly failure?: { code: string; message: string };
}

/** Handles one message. Never rejects: whatever goes wrong ends in a refusal, a count and a log line. */
export async function answer(answering: Answering, message: Incoming): Promise<void> {
  const { signs, ports, statistics, log } = answering;
  const finish = statistics.start(() => ports.monotonic());
  const arrived = ports.monotonic();
  const passage: Passage = { message, signs };
  const effects = new Effects();
  const fields: Record<string, unknown> = { op: signs.operation.name };
  try {
    const work = handleInTime(answering, passage, effects, fields, arrived);
    const settled = await work.settled;
    const target = replyTarget(passage);
    if (target !== undefined) answering.send(target, settled.reply);
    finish(settled.failure);
    void work.ended.then(() => passage.place?.release());
    const ms = ports.monotonic() - arrived;
    fields.code = settled.failure?.code ?? "ok";
    fields.ms = Math.round(ms);
    countRequest(signs.operation, settled.failure?.code ?? "ok", ms);
    log.info(fields, "request");
  } catch (error) {
    passage.place?.release();
    if (error instanceof Dropped) {
      finish({ dropped: error.why });
      countRequest(signs.operation, "dropped", ports.monotonic() - arrived);
      log.warn({ op: signs.operation.name, dropped: error.why }, "dropped");
      return;
    }
    finish({ code: "internal", message: "internal error" });
    log.error({ ...fields, err: textOf(error) }, "a reply could not be sent");
  }
}

/**
 * `settled` is the reply, at the deadline at the latest; `ended` is when the handler really stopped,
 * until which its place stays taken.
 */
function handleInTime(
  answering: Answering,
  passage: Passage,
  effects: Effects,
  fields: Record<string, unknown>,
  arrived: number,
): { settled: Promise<Settled>; ended: Promise<void> } {
  const { ports, log, stopping } = answering;
  const giveUp = new AbortController();
  const running = run(answering, passage, effects, fields, arrived, giveUp.signal).then(
    (reply): Settled => ({ reply }),
    (error): Settled => {
      if (error instanceof Dropped) throw error;
      return settleRefusal(answering, passage, effects, fields, error);
    },
  );
  let late = false;
  const budget = new AbortController();
  const cut = (error: AuthorityError): Settled => {
    late = true;
    giveUp.abort(error);
    return settleRefusal(answering, passage, effects, fields, error);
  };
  // `run` has walked the synchronous steps by now, so a readable envelope is known.
  const deadline = ports
    .sleep(Math.max(0, arrived + budgetOf(passage.envelope) - ports.monotonic()), budget.signal)
    .then(() => cut(new AuthorityError("deadline-exceeded", "the deadline has passed")));
  let stop = (): void => {};
  const stopped = new Promise<Settled>((resolve) => {
    stop = () => resolve(cut(new AuthorityError("unavailable", "this replica is stopping, ask again")));
  });
  stopping.addEventListener("abort", stop);
  const ended = running.then(
    () => {},
    () => {},
  );
  void ended.then(() => {
    stopping.removeEventListener("abort", stop);
    budget.abort(OVER);
    if (late) log.warn({ ...fields, outcome: effects.outcome }, "work ended after its reply");
  });
  deadline.catch(() => {});
  return { settled: Promise.race([running, deadline, stopped]), ended };
}

/** Ends a wait whose end nobody heeds; without a reason an error would be made each time. */
const OVER = Symbol("over");

const budgetOf = (envelope: EndpointRequest | undefined): number =>
  Math.min(envelope?.deadlineMs ?? WIRE.maxDeadlineMs, WIRE.maxDeadlineMs);

async function run(
  answering: Answering,
  passage: Passage,
  effects: Effects,
  fields: Record<string, unknown>,
  arrived: number,
  signal: AbortSignal,
): Promise<Encoded> {
  const { endpoint, signs, output, ports, log } = answering;
  await walk(passage);
  const { envelope, subject, place } = passage;
  if (!envelope || !subject || !place) throw new TypeError("the road left out a step");
  const work: Work = { deadline: arrived + budgetOf(envelope), signal, effects };
  Object.assign(fields, { id: envelope.id, caller: `${subject.caller.owner}.${subject.caller.actor}` });
  const request: Request = {
    args: envelope.args ?? null,
    caller: subject.caller,
    subject,
    envelope,
    ...(envelope.auth === undefined ? {} : { idpToken: envelope.auth }),
    work,
    ports,
    log: log.child({ id: envelope.id, op: signs.operation.name }),
    note: (more) => Object.assign(fields, more),
    occupy: (owner) => place.occupy(owner),
  };
  const data = await requestSpan(signs.operation, request, async () => {
    await answering.admit?.(request);
    return endpoint.handle(request as Request<never>);
  });
  effects.complete();
  if (!output.Check(data)) throw internal(`${signs.operation.name}: the output does not fit its schema`);
  return encodeSuccess(envelope.id, data as Json, answering.maxPayload());
}

function settleRefusal(
  answering: Answering,
  passage: Passage,
  effects: Effects,
  fields: Record<string, unknown>,
  error: unknown,
): Settled {
  const id = answerId(passage);
  const outcome = answering.signs.operation.effect === "read" ? "not-executed" : effects.outcome;
  const refusal = refusalOf(error, outcome, id);
  fields.outcome = refusal.outcome;
  if (error instanceof AuthorityError) fields.reason = error.reason ?? error.message;
  else fields.reason = textOf(error);
  if (refusal.code === "internal") {
    answering.log.error(
      { ...fields, id, err: error instanceof Error ? (error.stack ?? error.message) : String(error) },
      "internal error",
    );
  }
  return { reply: encodeRefusal(id, refusal), failure: { code: refusal.code, message: refusal.message } };
}
