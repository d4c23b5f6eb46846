/**
 * The road of a request: every check before a handler, once, in the order of wire §3.
 * What differs between operations comes from their declarations.
 */
import type { MsgHdrs } from "@nats-io/nats-core";
import type { Validator } from "typebox/compile";
import type { ContractSet, Operation } from "../../shared/contracts/operation.ts";
import {
  type EndpointRequest,
  type JsonObject,
  parseBody,
  parseEnvelope,
  validationError,
} from "../../shared/envelope.ts";
import { AuthorityError, type ErrorCode } from "../../shared/errors.ts";
import { parseSubject, type RequestSubject } from "../../shared/subjects.ts";
import { isInbox, principalOf } from "../../shared/tokens.ts";
import { isGateway, type Place, type Places } from "./places.ts";
import type { Drop } from "./statistics.ts";

export interface Incarnation {
  readonly instanceId: string;
  readonly epoch: number;
  readonly registrationRevision: number;
}

export type ServingState = "ready" | "draining" | "unavailable";

/** The uids of provisioned users; looked up again when one does not fit (identity §1.1). */
export interface ProvisionedUsers {
  /** Whether this `local.<name>` may bear this uid: `true` for names that are not provisioned. */
  admits(name: string, uid: string): boolean | Promise<boolean>;
}

export interface Incoming {
  readonly subject: string;
  readonly reply: string;
  readonly headers: MsgHdrs | "unreadable" | undefined;
  readonly data: Uint8Array;
}

/** What the road knows of its service and endpoint. */
export interface RoadSigns {
  readonly space: string;
  readonly operation: Operation;
  readonly input: Validator;
  readonly contracts: ContractSet;
  readonly incarnation: Incarnation;
  readonly places: Places;
  readonly provisioned: ProvisionedUsers;
  readonly state: () => ServingState;
}

/** A request on its way; each step adds what it established. */
export interface Passage {
  readonly message: Incoming;
  readonly signs: RoadSigns;
  subject?: RequestSubject;
  place?: Place;
  body?: JsonObject;
  envelope?: EndpointRequest;
}

/** A message that gets no answer and runs nothing. */
export class Dropped extends Error {
  readonly why: Drop;
  constructor(why: Drop) {
    super(`dropped: ${why}`);
    this.why = why;
  }
}

type Step = (passage: Passage) => void | Promise<void>;

const refuse = (code: ErrorCode, message: string): never => {
  throw new AuthorityError(code, message);
};

function known(passage: Passage): { subject: RequestSubject; envelope: EndpointRequest; operation: Operation } {
  const { subject, envelope, signs } = passage;
  if (!subject || !envelope) throw new TypeError("the road's steps ran out of order");
  return { subject, envelope, operation: signs.operation };
}

const subjectForm: Step = (passage) => {
  const { message, signs } = passage;
  const subject = parseSubject(message.subject);
  const served =
    subject?.version === "legacy" &&
    subject.rail !== "all" &&
    subject.space === signs.space &&
    subject.endpoint === signs.operation.service &&
    subject.command === signs.operation.name &&
    (subject.rail === "one" || subject.instanceId === signs.incarnation.instanceId);
  if (!subject || !served) throw new Dropped("subject");
  passage.subject = subject;
};

/**
 * JetStream answers, with a stored body, to whatever reply subject an asker named; its answers bear such headers. Of
 * headers that cannot be read nobody can say that they do not.
 */
const notBrokerMade: Step = ({ message }) => {
  if (!message.headers) return;
  if (message.headers === "unreadable") throw new Dropped("broker-made");
  if (message.headers.code !== 0 || message.headers.description !== "") throw new Dropped("broker-made");
  for (const name of message.headers.keys()) {
    if (name.toLowerCase().startsWith("nats-")) throw new Dropped("broker-made");
  }
};

const replySubject: Step = ({ message }) => {
  if (message.reply !== "" && !isInbox(message.reply)) throw new Dropped("reply-not-inbox");
};

const freePlace: Step = (passage) => {
  if (passage.subject) passage.place = passage.signs.places.take(passage.subject.caller);
};

const jsonBody: Step = (passage) => {
  passage.body = parseBody(passage.message.data);
};

const envelopeShape: Step = (passage) => {
  if (passage.body) passage.envelope = parseEnvelope(passage.body);
};

const sameOperation: Step = (passage) => {
  const { envelope, subject } = known(passage);
  if (envelope.op.endpoint !== subject.endpoint || envelope.op.command !== subject.command) {
    refuse("op-mismatch", "op does not name the endpoint and command of the subject");
  }
};

const declaredClass: Step = (passage) => {
  if (known(passage).envelope.class !== "ephemeral") refuse("class-mismatch", "this command is ephemeral");
};

const sameSender: Step = (passage) => {
  const { envelope, subject } = known(passage);
  if (envelope.from.id !== principalOf(subject.caller.owner, subject.caller.actor)) {
    refuse("sender-mismatch", "from.id is not the caller of the subject");
  }
};

const admittedMode: Step = (passage) => {
  const { envelope, subject, operation } = known(passage);
  const admitted = subject.mode === null ? !operation.targeted : operation.modes.includes(subject.mode);
  if (!admitted) refuse("target-mismatch", "this command does not admit that target mode");
  if (!subject.target && envelope.target) refuse("target-mismatch", "this subject carries no target");
};

const sameTarget: Step = (passage) => {
  const { target } = known(passage).subject;
  if (!target) return;
  const claimed = known(passage).envelope.target;
  const same =
    claimed?.owner === target.owner &&
    (target.actor === undefined || (claimed.actor === target.actor && claimed.lifecycleUid === target.uid));
  if (!same) refuse("target-mismatch", "target is not the one of the subject");
};

const bindPlaced: Step = (passage) => {
  const { envelope, subject, operation } = known(passage);
  if (!envelope.bind) return;
  if (operation.name === "describe") refuse("bad-request", "describe takes no bind");
  if (subject.rail === "inst" && envelope.bind.instanceId !== subject.instanceId) {
    refuse("bad-request", "bind names another instance than the subject");
  }
};

const boundHere: Step = (passage) => {
  const { bind } = known(passage).envelope;
  const { instanceId, epoch } = passage.signs.incarnation;
  if (!bind) return;
  const details = [{ kind: "ai.cotal.ep.bind-refused" as const, instanceId, epoch }];
  if (bind.instanceId !== instanceId) {
    throw new AuthorityError("failed-precondition", "bound to another instance", { details });
  }
  if (bind.epoch !== epoch) throw new AuthorityError("expired", "bound to another epoch", { details });
};

const honouredContract: Step = (passage) => {
  const { envelope, operation } = known(passage);
  const { inputDigest, outputDigest } = envelope.op;
  if (operation.name === "describe") {
    if (inputDigest || outputDigest) refuse("contract-mismatch", "describe takes no digests");
    return;
  }
  const pair = passage.signs.contracts.pairs.get(operation.name);
  if (inputDigest !== pair?.inputDigest || outputDigest !== pair?.outputDigest) {
    refuse("contract-mismatch", "the digests are missing or not honoured, see describe");
  }
};

const authSlot: Step = (passage) => {
  const { envelope, subject, operation } = known(passage);
  if (envelope.auth === undefined) return;
  if (!isGateway(subject.caller)) refuse("permission-denied", "only a gateway may carry auth");
  if (!operation.auth) refuse("bad-request", "this command takes no auth");
};

const provisionedUid: Step = async (passage) => {
  const { caller } = known(passage).subject;
  if (caller.owner !== "local") return;
  if (!(await passage.signs.provisioned.admits(caller.actor, caller.uid))) {
    refuse("permission-denied", "this provisioned user bears another uid");
  }
};

const validArguments: Step = (passage) => {
  const { envelope } = known(passage);
  const args = envelope.args ?? null;
  const { input } = passage.signs;
  if (!input.Check(args)) throw validationError("the arguments do not fit the input schema", input.Errors(args));
};

const serving: Step = (passage) => {
  if (passage.signs.state() !== "ready") {
    throw new AuthorityError("unavailable", "this replica is not serving, ask again");
  }
};

/** In order; the names are what a log line and a test call them. */
export const road: readonly Step[] = [
  subjectForm,
  notBrokerMade,
  replySubject,
  freePlace,
  jsonBody,
  envelopeShape,
  sameOperation,
  declaredClass,
  sameSender,
  admittedMode,
  sameTarget,
  bindPlaced,
  boundHere,
  honouredContract,
  authSlot,
  provisionedUid,
  validArguments,
  serving,
];

/** Walks the road. Throws `Dropped` or an `AuthorityError`; `passage` keeps what was established until then. */
export async function walk(passage: Passage): Promise<void> {
  for (const step of road) {
    const pending = step(passage);
    if (pending) await pending;
  }
}
