/** The words in which the rows of the matrix are written (state §6). */
import { placeOf } from "../../store/streams.ts";
import type { Owner } from "../../tokens.ts";
import { dashForm } from "../../tokens.ts";
import type { Holder, MeshStreams } from "./profile.ts";

const API = "$JS.API";

export const info = (...streams: string[]): string[] => streams.map((stream) => `${API}.STREAM.INFO.${stream}`);
/** Leader-served reads of any message of the stream. */
export const get = (...streams: string[]): string[] => streams.map((stream) => `${API}.STREAM.MSG.GET.${stream}`);
/** Direct reads of the last message on a subject. */
export const dget = (stream: string, subject: string): string => `${API}.DIRECT.GET.${stream}.${subject}`;
export const create = (...streams: string[]): string[] => streams.map((stream) => `${API}.STREAM.CREATE.${stream}`);

/** Reading by a consumer that somebody else made. */
export const bind = (stream: string, consumer: string): string[] => [
  `${API}.CONSUMER.INFO.${stream}.${consumer}`,
  `${API}.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
  `$JS.ACK.${stream}.${consumer}.>`,
];

/** Making, reading and deleting one consumer of a literal name with one full filter. */
export const own = (stream: string, consumer: string, filter: string): string[] => [
  ...bind(stream, consumer),
  `${API}.CONSUMER.CREATE.${stream}.${consumer}.${filter}`,
  `${API}.CONSUMER.DELETE.${stream}.${consumer}`,
];

/** Any consumer of the stream. */
export const consumers = (stream: string, verbs: readonly string[]): string[] =>
  verbs.map((verb) => `${API}.CONSUMER.${verb}.${stream}.>`);

/** One string per member. */
export const each = <M>(members: Iterable<M>, text: (member: M) => string): string[] => [...members].map(text);

/** The space's own managers serve everybody; a person's serve that person (state §6, `W`). */
export const isSpacesOwn = (owner: Owner): boolean => owner === "local" || owner.startsWith("p_");

/** `$SRV` of one micro-service: every verb, the service's and each instance's. */
export const discovery = (service: string): string[] => [
  "$SRV.PING",
  "$SRV.INFO",
  "$SRV.STATS",
  `$SRV.*.${service}`,
  `$SRV.*.${service}.*`,
];

/** Every word that follows from the holder. */
export function words(holder: Holder, streams: MeshStreams = {}) {
  const { space, owner, actor, uid } = holder;
  const P = `cotal.${space}`;
  const T = `${owner}.${actor}.${uid}`;
  const place = (...of: Parameters<typeof placeOf>) => placeOf(...of).name;
  const kv = (bucket: string, key: string): string => `$KV.cotal_${bucket}_${space}.${key}`;
  const keyValue = (bucket: string): string => `KV_cotal_${bucket}_${space}`;
  const names = {
    PRES: keyValue("presence"),
    CHAN: keyValue("channels"),
    MEM: keyValue("membership"),
  };
  const short = { PRES: ["pres", "presence"], CHAN: ["chan", "channels"], MEM: ["mem", "membership"] } as const;
  return {
    P,
    T,
    kv,
    rec: (key: string): string => kv("records", key),
    ...names,
    LEASE: streams.lease ?? keyValue("delivery"),
    CHAT: `CHAT_${space}`,
    DM: `DM_${space}`,
    TASK: `TASK_${space}`,
    DLV: streams.delivery ?? `DLV_${space}`,
    EPT: `EPT_${space}`,
    WFJ: place("journal", space),
    EPC: place("contracts", space),
    EPF: place("facts", space),
    EPW: place("pool", space),
    EPE: place("events", space),
    OBS: place("observations", space),
    RECORDS: place("records", space),
    ACCEPTED: place("accepted", space),
    AUTH: place("auth", space),
    CONNECT: place("connect", space),
    ADMISSION: place("admission", space),
    ISSUED: place("issued", space),
    /** Replies on the rail derived from the request. */
    RE: `${P}.ep.reply.*.*.*.${T}.*`,
    DESC: [`${P}.ep.one.*.describe.${T}.*`, `${P}.ep.inst.*.*.describe.${T}.*`],
    ART: dget(place("contracts", space), `${P}.epc.*`),
    /** The holder's own reader of chat history. */
    chatReader: (of: Pick<Holder, "owner" | "actor" | "uid">, pattern: string): string[] =>
      own(`CHAT_${space}`, `chathist_${dashForm(of.owner, of.actor)}-${of.uid}`, `${P}.chat.*.*.${pattern}`),
    /** Watches of whole buckets, under the consumer name that the client must set. */
    watch: (...buckets: (keyof typeof short)[]): string[] =>
      buckets.flatMap((bucket) => {
        const [prefix, name] = short[bucket];
        return own(names[bucket], `${prefix}_${dashForm(owner, actor)}-${uid}`, kv(name, ">"));
      }),
    /** Reading one run's journal: `wfj`, for a mediator `wfm`, or two readers would share one cursor. */
    replay: (prefix: "wfj" | "wfm", run: string, takeoverId: string): string[] =>
      own(place("journal", space), `${prefix}_${run}_${takeoverId}`, `${P}.wfj.${run}`),
  };
}
