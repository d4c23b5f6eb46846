/**
 * Live probes of one credential. A template is a subject with `{name}` for a value that must be the holder's own and
 * `[word]` for a word that must be just this one. The subject itself must pass; each neighbour, in which one of them is
 * another, must be refused by the broker.
 */
import { setImmediate } from "node:timers/promises";
import { errors, type NatsConnection } from "@nats-io/transport-node";
import type { Permissions } from "../../shared/credentials/jwt.ts";
import { createKeyPair, type KeyPair } from "../../shared/credentials/nkeys.ts";
import type { Holder } from "../../shared/credentials/profiles/profile.ts";
import type { AccountName } from "../../shared/credentials/users.ts";
import type { Owner, Uid } from "../../shared/tokens.ts";
import { holder, uid } from "./bindings.ts";
import type { Mesh } from "./mesh.ts";

export interface Identity {
  readonly key: KeyPair;
  readonly holder: Holder;
}

export function identity(owner: Owner, actor: string, of: Uid = uid): Identity {
  const key = createKeyPair("user");
  return { key, holder: holder(owner, actor, of, key.public) };
}

/** The holder's own value and a neighbour's, per name. */
export type Values = Readonly<Record<string, readonly [own: string, other: string]>>;

export interface Probe {
  readonly name: string;
  readonly account: AccountName;
  readonly of: Identity;
  readonly permissions: Permissions;
  /** Beside `{s}` space, `{o}` owner, `{a}` actor, `{u}` uid, `{n}` the inbox. */
  readonly values?: Values;
  readonly publish: readonly string[];
  /** A queue stands after a blank: then the plain subscription must be refused, too. */
  readonly subscribe: readonly string[];
  /** Further literals that must be refused. */
  readonly notPublish: readonly string[];
  readonly notSubscribe: readonly string[];
}

export interface Outcome {
  /** What should have passed and was refused. */
  readonly refused: string[];
  /** What should have been refused and passed. */
  readonly passed: string[];
}

const NOBODY = `u_${"z".repeat(26)}`;
const UID = "9".repeat(26);

const ofHolder = ({ space, owner, actor, uid: of, inbox }: Holder): Values => ({
  s: [space, "other"],
  o: [owner, NOBODY],
  a: [actor, "other"],
  u: [of, UID],
  n: [inbox, createKeyPair("user").public],
});

/** The subject, and every neighbour that differs from it in one place. */
export function expand(template: string, values: Values): { own: string; others: string[] } {
  const parts = template.split(/(\{[a-z]+\}|\[[^\]]+\])/);
  const pair = (part: string): readonly [string, string] => {
    if (part.startsWith("[")) return [part.slice(1, -1), part.startsWith("[_") ? "_OTHER" : "other-word"];
    if (!part.startsWith("{")) return [part, part];
    const value = values[part.slice(1, -1)];
    if (!value) throw new Error(`no value for ${part} in ${template}`);
    return value;
  };
  const own = parts.map((part) => pair(part)[0]);
  const others = own.flatMap((word, at) => {
    const [, other] = pair(parts[at] ?? "");
    return other === word ? [] : [own.with(at, other).join("")];
  });
  return { own: own.join(""), others };
}

export async function run(mesh: Mesh, probe: Probe): Promise<Outcome> {
  const connection = await mesh.connect(probe.account, probe.of.holder, probe.permissions, probe.name, probe.of.key);
  try {
    const values = { ...ofHolder(probe.of.holder), ...probe.values };
    const publish = probe.publish.map((template) => expand(template, values));
    const subscribe = ["_INBOX_{n}.x", ...probe.subscribe].map((template) => expand(template, values));
    const mayNotHear = [
      ...subscribe.flatMap(({ others }) => others),
      ...subscribe.flatMap(({ own }) => (own.includes(" ") ? [plain(own), `${plain(own)} other`] : [])),
      ...literals(probe.notSubscribe, values),
      ...EVERYTHING,
    ];
    const mayNotSend = [...publish.flatMap(({ others }) => others), ...literals(probe.notPublish, values), ...UPKEEP];
    const sending = publish.map(({ own }) => own);
    const hearing = subscribe.map(({ own }) => own);
    // First what must be refused: what may be sent could purge or kick.
    const refusals = new Refusals(connection);
    const unsent = await refusals.ofPublishing(mayNotSend);
    const unheard = await refusals.ofSubscribing(mayNotHear);
    const deaf = await refusals.ofSubscribing(hearing);
    const mute = await refusals.ofPublishing(sending);
    return {
      refused: [...hearing.filter((it) => deaf.has(it)), ...sending.filter((it) => mute.has(it))],
      passed: [...mayNotSend.filter((it) => !unsent.has(it)), ...mayNotHear.filter((it) => !unheard.has(it))],
    };
  } finally {
    await connection.close();
  }
}

const literals = (templates: readonly string[], values: Values) =>
  templates.map((template) => expand(template, values).own);
const plain = (subscription: string): string => subscription.split(" ")[0] ?? "";

/** Nobody may hear everything, or the inbox of all. */
const EVERYTHING = [">", "*", "cotal.>", "cotal.demo.>", "$KV.>", "$SYS.>", "$JS.>"];
/** Nobody may rebuild a stream, or make a consumer of the old form. */
const UPKEEP = ["UPDATE", "DELETE", "SNAPSHOT", "RESTORE", "LEADER.STEPDOWN"]
  .flatMap((verb) => ["KV_cotal_records_demo", "CHAT_demo", "OBS_demo"].map((s) => `$JS.API.STREAM.${verb}.${s}`))
  .concat("$JS.API.STREAM.PURGE.KV_cotal_records_demo", "$JS.API.CONSUMER.DURABLE.CREATE.KV_cotal_records_demo.x")
  .concat("$JS.API.CONSUMER.DURABLE.CREATE.DM_demo.x", "$JS.API.META.LEADER.STEPDOWN", "$JS.API.STREAM.LIST");

/** What the broker refused of what was sent since the last look. Reads until the connection closes. */
class Refusals {
  readonly #connection: NatsConnection;
  #seen = new Set<string>();

  constructor(connection: NatsConnection) {
    this.#connection = connection;
    void this.#read();
  }

  async ofPublishing(subjects: readonly string[]): Promise<Set<string>> {
    for (const subject of subjects) this.#connection.publish(subject);
    return this.#take();
  }

  async ofSubscribing(subjects: readonly string[]): Promise<Set<string>> {
    for (const text of subjects) {
      const [subject = "", queue] = text.split(" ");
      this.#connection.subscribe(subject, { callback: () => {}, ...(queue === undefined ? {} : { queue }) });
    }
    return this.#take();
  }

  /** The broker answers in order: once it has answered the flush, every refusal has arrived. */
  async #take(): Promise<Set<string>> {
    await this.#connection.flush();
    await setImmediate();
    const seen = this.#seen;
    this.#seen = new Set();
    return seen;
  }

  async #read(): Promise<void> {
    for await (const event of this.#connection.status()) {
      if (event.type !== "error" || !(event.error instanceof errors.PermissionViolationError)) continue;
      const { subject, queue } = event.error;
      this.#seen.add(queue === undefined ? subject : `${subject} ${queue}`);
    }
  }
}
