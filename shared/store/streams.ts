/** The streams of state §1: name, subjects and shape of each, as data. */
import { STORE } from "../limits.ts";
import type { Space } from "../tokens.ts";

/** Which account of a space a stream lives in (state §1). */
export type StreamAccount = "authority" | "space";

/** The streams of ours, `journal` the mesh's own that we only read. */
export type StreamName =
  | "auth"
  | "connect"
  | "admission"
  | "issued"
  | "accepted"
  | "records"
  | "contracts"
  | "observations"
  | "journal";

/** Further streams of the mesh: read or published to, neither created nor proven here. */
export type MeshStream = "facts" | "pool" | "events";

export type AnyStream = StreamName | MeshStream;

/** Where rows are: a KV bucket, or subjects after a prefix. */
export interface StreamPlace {
  readonly account: StreamAccount;
  /** The stream's own name. */
  readonly name: string;
  /** What stands before a key in its subject. */
  readonly prefix: string;
}

/** A field that may have either value. */
export const ANY: unique symbol = Symbol("any");

const KV = (bucket: string, account: StreamAccount) => (space: Space) => ({
  account,
  name: `KV_cotal_${bucket}_${space}`,
  prefix: `$KV.cotal_${bucket}_${space}.`,
});
const MESH = (stream: string, word: string) => (space: Space) => ({
  account: "space" as const,
  name: `${stream}_${space}`,
  prefix: `cotal.${space}.${word}`,
});

const PLACES: Record<AnyStream, (space: Space) => StreamPlace> = {
  auth: KV("auth", "authority"),
  connect: KV("connect", "authority"),
  admission: KV("admission", "authority"),
  issued: KV("issued", "authority"),
  accepted: KV("accepted", "space"),
  records: KV("records", "space"),
  contracts: MESH("EPC", "epc."),
  /** Keys of observations are the request's whole subject. */
  observations: (space) => ({ account: "space", name: `OBS_${space}`, prefix: "" }),
  journal: MESH("WFJ", "wfj."),
  facts: MESH("EPF", "epf."),
  pool: MESH("EPW", "epw."),
  events: MESH("EPE", "epe."),
};

export const placeOf = (stream: AnyStream, space: Space): StreamPlace => PLACES[stream](space);

export const subjectOf = (stream: AnyStream, space: Space, key: string): string => placeOf(stream, space).prefix + key;

/** A stream of rows, of which the last message of a subject counts. */
const ROWS: Shape = {
  max_msgs_per_subject: 1,
  discard: "old",
  discard_new_per_subject: false,
  allow_direct: false,
  allow_atomic: false,
  allow_msg_ttl: false,
  deny_delete: true,
  deny_purge: true,
  storage: "file",
  no_ack: false,
  max_age: 0,
  max_msg_size: -1,
  max_bytes: -1,
};
type Shape = Readonly<Record<string, string | number | boolean | typeof ANY>>;

/** The broker refuses a second message on a subject, whoever sends it. */
const WRITE_ONCE = { discard: "new", discard_new_per_subject: true };

const SHAPES: Readonly<Partial<Record<AnyStream, Shape>> & Record<StreamName, Shape>> = {
  auth: { ...ROWS, allow_atomic: true, allow_msg_ttl: true },
  connect: { ...ROWS, allow_msg_ttl: true },
  admission: { ...ROWS, ...WRITE_ONCE },
  issued: { ...ROWS, max_msgs_per_subject: -1, allow_msg_ttl: true },
  accepted: { ...ROWS, ...WRITE_ONCE, allow_direct: true, allow_msg_ttl: true },
  records: { ...ROWS, allow_direct: true, allow_atomic: true },
  contracts: { ...ROWS, ...WRITE_ONCE, allow_direct: true },
  observations: {
    ...ROWS,
    deny_delete: false,
    storage: "memory",
    no_ack: true,
    max_age: STORE.takeMaxAgeMs * 1_000_000,
    max_msg_size: 24_576,
    max_bytes: 1_073_741_824,
  },
  journal: { ...ROWS, max_msgs_per_subject: -1, allow_atomic: ANY, deny_delete: ANY, deny_purge: ANY },
};

/** Whether a subject is taken by its first message, whatever a later one expects. */
export const isWriteOnce = (stream: AnyStream): boolean => SHAPES[stream]?.discard_new_per_subject === true;

const OBSERVED_COMMANDS = ["run-start", "run-resume", "run-answer"] as const;

function subjectsOf(stream: StreamName, space: Space): string[] {
  const { prefix } = placeOf(stream, space);
  switch (stream) {
    case "observations":
      return [`cotal.${space}.ep`, `cotal.${space}.ep.v1`].flatMap((rail) =>
        OBSERVED_COMMANDS.flatMap((command) => [
          `${rail}.one.manager.${command}.>`,
          `${rail}.inst.manager.*.${command}.>`,
        ]),
      );
    case "journal":
      return [`${prefix}*`];
    default:
      return [`${prefix}>`];
  }
}

/** The same for every stream: no copy of, to or from elsewhere, nothing that rewrites, counts, schedules or defers. */
const COMMON = {
  retention: "limits",
  max_msgs: -1,
  sealed: false,
  mirror: undefined,
  sources: undefined,
  republish: undefined,
  subject_transform: undefined,
  // With markers the broker insists on rollups.
  subject_delete_marker_ttl: 0,
  allow_rollup_hdrs: false,
  allow_msg_counter: false,
  allow_msg_schedules: false,
  persist_mode: undefined,
} as const;

/** Every proven field of a stream's configuration; `ANY` where either value will do. */
export const shapeOf = (stream: StreamName, space: Space): Readonly<Record<string, unknown>> => ({
  ...COMMON,
  ...SHAPES[stream],
  subjects: subjectsOf(stream, space),
});
