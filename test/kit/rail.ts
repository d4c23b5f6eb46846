/**
 * Requests on the rail in whose every part a test may be wrong, and what comes back as it is on the wire.
 *
 * ```ts
 * const rail = await Rail.open(space);
 * const reply = await rail.send({ ...rail.draft(runAdmit), envelope: { class: "journal" } });
 * expect(reply.code).toBe("class-mismatch");
 * ```
 */
import type { MsgHdrs, NatsConnection } from "@nats-io/transport-node";
import { type Operation, schemaClosure } from "../../shared/contracts/operation.ts";
import { newNonce, newUid, systemPorts } from "../../shared/ports.ts";
import { MODE_TARGETS, type Mode } from "../../shared/subjects.ts";
import { Actor, Owner, principalOf, type Space, type Triple } from "../../shared/tokens.ts";
import type { Ground } from "./ground.ts";

const ports = systemPorts;

/** One request, whole unless something in it says otherwise. */
export interface Draft {
  readonly operation: Operation;
  readonly caller: Triple;
  readonly target?: Triple;
  /** Over the subject that follows from the above. */
  readonly subject?: string;
  /** Of the subject; `null` for none where the operation has one. */
  readonly mode?: Mode | null;
  /** Over the members of the envelope; `undefined` leaves one out. */
  readonly envelope?: Readonly<Record<string, unknown>>;
  /** In place of the envelope. */
  readonly bytes?: Uint8Array | string;
  readonly headers?: MsgHdrs;
  /** An inbox unless given; `null` for none. */
  readonly reply?: string | null;
}

/** A reply as it arrived. */
export interface RailReply {
  readonly subject: string;
  readonly id: string;
  readonly ok: boolean;
  readonly data?: unknown;
  readonly code?: string;
  readonly message?: string;
  readonly outcome?: string;
  readonly details?: readonly { readonly kind: string }[];
  /** The two error headers. */
  readonly error?: string;
  readonly number?: string;
}

/** Fresh people, so that nobody's places fill up. */
export const stranger = (actor = "cli"): Triple => {
  const letters = Buffer.from(ports.random(26)).map((byte) => "abcdefghijklmnopqrstuvwxyz234567".charCodeAt(byte % 32));
  return { owner: Owner.parse(`u_${Buffer.from(letters).toString()}`), actor: Actor.parse(actor), uid: newUid(ports) };
};

export class Rail {
  readonly #connection: NatsConnection;
  readonly #space: Space;
  readonly #inbox = `_INBOX_rail_${newUid(ports)}`;
  readonly #waiting = new Map<string, (reply: RailReply) => void>();
  /** Every reply in order of arrival, asked for or not. */
  readonly replies: RailReply[] = [];

  private constructor(connection: NatsConnection, space: Space) {
    this.#connection = connection;
    this.#space = space;
  }

  /** On a connection that may publish anything. */
  static async open({ roots, space }: Pick<Ground, "roots" | "space">): Promise<Rail> {
    const rail = new Rail(roots.space, space);
    const heard = (subject: string) =>
      roots.space.subscribe(subject, {
        callback: (_, message) => {
          const reply = readReply(message.subject, message.data, message.headers);
          rail.replies.push(reply);
          rail.#waiting.get(placeOf(message.subject))?.(reply);
        },
      });
    heard(`${rail.#inbox}.>`);
    heard(`cotal.${space}.ep.reply.>`);
    await roots.space.flush();
    return rail;
  }

  /** A fresh inbox of this test's. */
  inbox(): string {
    return `${this.#inbox}.${newNonce(ports)}`;
  }

  draft(operation: Operation, more: Partial<Draft> = {}): Draft {
    const target = operation.targeted ? stranger("coder") : undefined;
    return { operation, caller: stranger(), ...(target ? { target } : {}), ...more };
  }

  /** Sends it and gives the reply; rejects after 5 s of silence. */
  async send(draft: Draft): Promise<RailReply> {
    const { reply, subject } = this.#parts(draft);
    const at = placeOf(reply ?? subject);
    const answered = new Promise<RailReply>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`silence on ${subject}`)), 5_000);
      this.#waiting.set(at, (one) => {
        clearTimeout(late);
        resolve(one);
      });
    });
    this.post({ ...draft, subject, reply: reply ?? null });
    try {
      return await answered;
    } finally {
      this.#waiting.delete(at);
    }
  }

  /** Publishes alone. */
  post(draft: Draft): void {
    const { subject, reply } = this.#parts(draft);
    const { headers, bytes = JSON.stringify(envelopeOf(draft)) } = draft;
    this.#connection.publish(subject, bytes, {
      ...(reply === undefined ? {} : { reply }),
      ...(headers ? { headers } : {}),
    });
  }

  #parts(draft: Draft): { subject: string; reply: string | undefined } {
    const reply = draft.reply === undefined ? this.inbox() : (draft.reply ?? undefined);
    return { subject: draft.subject ?? subjectOf(this.#space, draft), reply };
  }
}

export function subjectOf(space: Space, { operation, caller, target, mode }: Draft): string {
  const word = mode === undefined ? operation.modes[0] : (mode ?? undefined);
  const tokens = word && target ? [target.owner, target.actor, target.uid].slice(0, MODE_TARGETS[word]) : [];
  const { owner, actor, uid } = caller;
  const parts = [...(word ? [word] : []), ...tokens, owner, actor, uid, newNonce(ports)];
  return `cotal.${space}.ep.one.${operation.service}.${operation.name}.${parts.join(".")}`;
}

export function envelopeOf({ operation, caller, target, envelope = {} }: Draft): Record<string, unknown> {
  const digests = { inputDigest: schemaClosure(operation.input), outputDigest: schemaClosure(operation.output) };
  return {
    v: 1,
    id: newNonce(ports),
    op: {
      endpoint: operation.service,
      command: operation.name,
      ...(operation.name === "describe" ? {} : digests),
    },
    class: "ephemeral",
    replyExpected: true,
    ...(target ? { target: { owner: target.owner, actor: target.actor, lifecycleUid: target.uid } } : {}),
    ...(operation.example === null ? {} : { args: operation.example }),
    from: { id: principalOf(caller.owner, caller.actor), name: "test" },
    deadlineMs: 5_000,
    ...envelope,
  };
}

/** An inbox, or of request and derived reply rail what both end in: the caller and the nonce. */
const placeOf = (subject: string): string =>
  subject.startsWith("cotal.") ? subject.split(".").slice(-4).join(".") : subject;

function readReply(subject: string, data: Uint8Array, headers: MsgHdrs | undefined): RailReply {
  const body = JSON.parse(Buffer.from(data).toString());
  const error = headers?.get("Nats-Service-Error");
  const number = headers?.get("Nats-Service-Error-Code");
  return { subject, id: body.id, ok: body.ok, data: body.data, ...body.error, ...(error ? { error, number } : {}) };
}
