/** The durables in which an incarnation's messages wait, on those of the mesh's streams that exist (lifecycles §1.1). */
import type { NatsConnection } from "@nats-io/nats-core";
import type { MeshStreams } from "../../../shared/credentials/profiles/profile.ts";
import { unavailable } from "../../../shared/errors.ts";
import { MAILBOX, STORE } from "../../../shared/limits.ts";
import type { Ports } from "../../../shared/ports.ts";
import { askApi, BROKER, describe } from "../../../shared/store/api.ts";
import { dashForm, type Space, type Triple } from "../../../shared/tokens.ts";
import { timeLeft, type Work } from "../../../shared/work.ts";

const CONSUMER_EXISTS = [10013, 10148];

interface Durable {
  readonly stream: string;
  readonly name: string;
  readonly filter: string;
}

export interface MailboxOptions {
  readonly space: Space;
  readonly streams?: MeshStreams;
  /** The `scan` connection of the space account: the one that may create consumers. */
  readonly connection: () => NatsConnection;
  readonly ports: Ports;
}

export class Mailbox {
  readonly #options: MailboxOptions;

  constructor(options: MailboxOptions) {
    this.#options = options;
  }

  /** Makes what is missing; one that exists is kept. `unavailable` where the broker does not say so. */
  async open(holder: Triple, role: string | undefined, work: Work): Promise<void> {
    const shared = role === undefined ? [] : [this.#ofRole(role)];
    for (const durable of [...this.#own(holder), ...shared]) await this.#create(durable, work);
  }

  /** Removes the incarnation's own two; a role's is shared and stays. */
  async remove(holder: Triple, work: Work): Promise<void> {
    for (const { stream, name } of this.#own(holder)) {
      const answer = await this.#ask<object>(`CONSUMER.DELETE.${stream}.${name}`, undefined, work);
      const code = answer.error?.err_code;
      if (!answer.error || code === BROKER.streamNotFound || code === BROKER.consumerNotFound) continue;
      throw unavailable(`mailbox ${name}: ${describe(answer.error)}`);
    }
  }

  #own({ owner, actor, uid }: Triple): Durable[] {
    const { space, streams } = this.#options;
    const tail = `${dashForm(owner, actor)}-${uid}`;
    return [
      { stream: `DM_${space}`, name: `dm_${tail}`, filter: `cotal.${space}.inst.${owner}.${actor}.>` },
      {
        stream: streams?.delivery ?? `DLV_${space}`,
        name: `dlv_${tail}`,
        filter: `cotal.${space}.dlv.${owner}.${actor}.${uid}`,
      },
    ];
  }

  #ofRole(role: string): Durable {
    const { space } = this.#options;
    return { stream: `TASK_${space}`, name: `svc_${role}`, filter: `cotal.${space}.svc.${role}.>` };
  }

  async #create({ stream, name, filter }: Durable, work: Work): Promise<void> {
    const info = await this.#ask<{ state?: { last_seq?: number } }>(`STREAM.INFO.${stream}`, undefined, work);
    if (info.error?.err_code === BROKER.streamNotFound) return;
    if (info.error) throw unavailable(`mailbox ${name}: ${describe(info.error)}`);
    const config = {
      durable_name: name,
      name,
      filter_subject: filter,
      ack_policy: "explicit",
      ack_wait: MAILBOX.ackWaitS * 1e9,
      deliver_policy: "by_start_sequence",
      opt_start_seq: (info.state?.last_seq ?? 0) + 1,
    };
    const request = { stream_name: stream, config, action: "create" };
    const answer = await this.#ask<object>(`CONSUMER.CREATE.${stream}.${name}.${filter}`, request, work);
    if (!answer.error || CONSUMER_EXISTS.includes(answer.error.err_code ?? 0)) return;
    throw unavailable(`mailbox ${name}: ${describe(answer.error)}`);
  }

  #ask<T extends object>(api: string, request: object | undefined, work: Work) {
    const timeout = Math.max(1, Math.min(STORE.readTimeoutMs, timeLeft(work, this.#options.ports)));
    return askApi<T>(this.#options.connection(), api, request, timeout);
  }
}
