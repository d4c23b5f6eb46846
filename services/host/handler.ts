/** What a handler gets and gives. The road before it and the reply after it are written once, in this folder. */
import type { Logger } from "pino";
import type { Input, Operation, Output } from "../../shared/contracts/operation.ts";
import type { EndpointRequest } from "../../shared/envelope.ts";
import type { Ports } from "../../shared/ports.ts";
import type { RequestSubject } from "../../shared/subjects.ts";
import type { Triple } from "../../shared/tokens.ts";
import type { Work } from "../../shared/work.ts";

export interface Request<Args = unknown> {
  /** Validated against the operation's input schema. */
  readonly args: Args;
  /** The triple that the broker let this caller publish. */
  readonly caller: Triple;
  readonly subject: RequestSubject;
  readonly envelope: EndpointRequest;
  /** The identity provider's token of a request that came through a gateway. Never logged. */
  readonly idpToken?: string;
  /** Deadline and the record of what became of its writes. */
  readonly work: Work;
  readonly ports: Ports;
  readonly log: Logger;
  /** Adds fields to the one log line of this request. */
  note(fields: Record<string, unknown>): void;
  /** Counts the person behind a gateway against its places, once known (wire §3, check 3); freed with the request. */
  occupy(owner: string): void;
}

/** Answers one operation, or throws an `AuthorityError`. It neither publishes nor formats a reply. */
export type Handler<O extends Operation> = (request: Request<Input<O>>) => Promise<Output<O>>;

export interface Endpoint {
  readonly operation: Operation;
  readonly handle: (request: Request<never>) => Promise<unknown>;
}

/** Binds a handler to its declaration. */
export const endpoint = <O extends Operation>(operation: O, handle: Handler<O>): Endpoint => ({ operation, handle });
