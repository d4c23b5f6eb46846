/** Check O: the authority saw the request itself, and nobody has used it before (operations §4). */
import type { Json } from "../../../shared/canonical.ts";
import { type EndpointRequest, type JsonObject, parseBody, parseEnvelope } from "../../../shared/envelope.ts";
import { AuthorityError } from "../../../shared/errors.ts";
import { parseSubject, type RequestSubject } from "../../../shared/subjects.ts";
import { EndpointLabel, principalOf } from "../../../shared/tokens.ts";
import { observations } from "../runs/metrics.ts";
import type { Visit } from "../visit.ts";

export interface Observed {
  readonly subject: RequestSubject;
  readonly class: EndpointRequest["class"];
  readonly op: EndpointRequest["op"];
  readonly bind?: EndpointRequest["bind"];
  readonly runId?: string;
  readonly stepKey?: string;
  /** The subject's unless the arguments name one. */
  readonly endpoint: string;
  readonly amend: boolean;
}

const refused = (reason: string): AuthorityError =>
  new AuthorityError("permission-denied", "no such request was observed, publish it again", { reason });

/** Every refusal is `permission-denied`. Taking spends the observation even if a later check fails. */
export async function observe(visit: Pick<Visit, "context" | "work">, subject: string): Promise<Observed> {
  const parsed = parseSubject(subject);
  if (!parsed) throw refused("the subject has no form");
  const observation = await visit.context.store.take(subject, visit.work);
  if (!observation) {
    observations.inc({ result: "absent" });
    throw refused("not observed or taken before");
  }
  try {
    const observed = readObserved(parsed, observation.body);
    observations.inc({ result: "taken" });
    return observed;
  } catch (error) {
    observations.inc({ result: "unreadable" });
    throw error;
  }
}

/** What an observed body says, if it is a request on its subject. */
function readObserved(subject: RequestSubject, body: Uint8Array): Observed {
  let envelope: EndpointRequest;
  try {
    envelope = parseEnvelope(parseBody(body));
  } catch (error) {
    throw refused(`the body is no request: ${error instanceof AuthorityError ? error.message : "unreadable"}`);
  }
  const { op, from, target, bind } = envelope;
  if (op.endpoint !== subject.endpoint || op.command !== subject.command) throw refused("op is not the subject's");
  if (from.id !== principalOf(subject.caller.owner, subject.caller.actor)) throw refused("from is not the subject's");
  if (target && (subject.mode === null || subject.mode === "self")) throw refused("a target without a mode");
  if (bind && subject.rail === "inst" && bind.instanceId !== subject.instanceId) throw refused("bound elsewhere");
  const args: JsonObject = isObject(envelope.args) ? envelope.args : {};
  const { runId, stepKey, endpoint, amend } = args;
  return {
    subject,
    class: envelope.class,
    op,
    ...(bind ? { bind } : {}),
    ...(typeof runId === "string" ? { runId } : {}),
    ...(typeof stepKey === "string" ? { stepKey } : {}),
    endpoint: EndpointLabel.is(endpoint) ? endpoint : subject.endpoint,
    amend: amend === true,
  };
}

const isObject = (value: unknown): value is { [key: string]: Json } =>
  value !== null && typeof value === "object" && !Array.isArray(value);
