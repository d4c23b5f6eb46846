/**
 * The audit of the matrix, on permissions as decoded from a JWT (state §6). Each rule is a function of its own, so that a
 * test can break it on purpose; what only a live broker shows, the probes of every row, is a test.
 */
import { contains, isPattern, overlaps } from "../patterns.ts";
import { placeOf } from "../store/streams.ts";
import type { Space } from "../tokens.ts";
import type { Permissions } from "./jwt.ts";
import { PROFILES, type ProfileName } from "./profiles.ts";
import type { AccountName } from "./users.ts";

export interface Audited {
  readonly profile: ProfileName;
  readonly space: Space;
  /** The account that signed it. */
  readonly account: AccountName;
  readonly permissions: Permissions;
  /** What its row of the matrix compiles to, from the same bindings. */
  readonly row: Permissions;
}

export interface Finding {
  readonly rule: number;
  readonly profile: ProfileName;
  readonly subject: string;
}

type Rule = (audited: Audited) => string[];

/** No grant may take in the whole of one of these. */
const WHOLE = ["$JS.API.>", "$KV.>", "$O.>", "$SYS.>", "$SRV.>", "cotal.>"];

/** 1. Nothing of a whole kind, no star inside a token, nothing that the matrix does not have. */
const fromTheMatrix: Rule = ({ permissions, row }) => {
  const { pub, sub } = permissions;
  const known = new Set([...row.pub.allow, ...row.sub.allow.map((text) => `sub ${text}`)]);
  const unknown = [...pub.allow, ...sub.allow.map((text) => `sub ${text}`)].filter((text) => !known.has(text));
  const wide = [...pub.allow, ...sub.allow.map(subjectOf)].filter(
    (text) => WHOLE.some((whole) => contains(text, whole)) || !isPattern(text),
  );
  const missing = [...row.pub.deny, ...row.sub.deny].filter((text) => ![...pub.deny, ...sub.deny].includes(text));
  // To the broker an empty list is everything.
  const open = [pub, sub].filter(({ allow, deny }) => allow.length === 0 && !deny.includes(">")).map(() => "(all)");
  const answers = permissions.resp?.max === row.resp?.max && permissions.resp?.ttl === row.resp?.ttl ? [] : ["resp"];
  return [...unknown, ...wide, ...missing, ...open, ...answers];
};

const IN_AUTHORITY: readonly ProfileName[] = ["store", "scan", "exchange-store"];

/** 2. The authority account has three profiles; only `work` names the observation stream. */
const keptApart: Rule = ({ profile, account, space, permissions }) => {
  const foreign = account === "authority" && !IN_AUTHORITY.includes(profile) ? ["(authority account)"] : [];
  if (profile === "work") return foreign;
  const { name } = placeOf("observations", space);
  return [...foreign, ...permissions.pub.allow.filter((text) => text.split(".").includes(name))];
};

const CREATORS: readonly ProfileName[] = ["scan", "agent", "admin", "run-driver", "run-mediator", "run-operator"];
const CREATE = "$JS.API.CONSUMER.CREATE.";

/** 3. Consumers are made by few, and there with a literal name and one full filter. */
const fewConsumers: Rule = ({ profile, space, permissions }) => {
  const durable = permissions.pub.allow.filter((text) => overlaps(text, "$JS.API.CONSUMER.DURABLE.>"));
  const creating = permissions.pub.allow.filter((text) => overlaps(text, `${CREATE}>`));
  if (!CREATORS.includes(profile)) return [...durable, ...creating];
  if (profile === "scan") return durable;
  const free = profile === "admin" ? [`CHAT_${space}`, `DM_${space}`] : [];
  return [
    ...durable,
    ...creating.filter((text) => {
      const [stream, name, filter] = text.startsWith(CREATE) ? text.slice(CREATE.length).split(".") : [];
      if (stream !== undefined && free.includes(stream)) return false;
      return (
        [stream, name, filter].some((token) => token === undefined || token === ">") || /[*>]/.test(`${stream}${name}`)
      );
    }),
  ];
};

/** 4. The class rail is heard only in a queue, and nobody can ask what it answers itself. */
const noOverhearing: Rule = ({ space, permissions }) => {
  const rails = [`cotal.${space}.ep.one.>`, `cotal.${space}.ep.v1.one.>`];
  const heard = permissions.sub.allow.filter((text) => {
    const [subject = "", queue] = text.split(" ");
    return queue === undefined && rails.some((rail) => overlaps(subject, rail));
  });
  const served = permissions.sub.allow.map(subjectOf).filter((text) => isRequest(text, space));
  const own = permissions.pub.allow.filter((text) => served.some((subject) => overlaps(subject, text)));
  return [...heard, ...own];
};

const isRequest = (text: string, space: Space): boolean =>
  ["one", "all", "inst", "v1.one", "v1.all", "v1.inst"].some((rail) => overlaps(text, `cotal.${space}.ep.${rail}.>`));

const WRITER_READERS: readonly ProfileName[] = [
  "channel-writer",
  "goal-writer",
  "executor",
  "run-driver",
  "run-mediator",
  "run-operator",
];
const RAW_READ = "$JS.API.STREAM.MSG.GET.";

/**
 * 5. Who may read any message of a stream may aim the broker's answer at any subject, so among what leaves our processes
 * few may also write to it.
 */
const noEcho: Rule = ({ profile, permissions }) => {
  const { kind } = PROFILES[profile];
  if (kind === "self" || kind === "provisioned" || WRITER_READERS.includes(profile)) return [];
  const streams = permissions.pub.allow
    .filter((text) => text.startsWith(RAW_READ))
    .map((text) => text.slice(RAW_READ.length));
  return permissions.pub.allow.filter((text) => streams.some((stream) => overlaps(text, capturedBy(stream))));
};

/** The subjects of a stream by the mesh's naming: `KV_<bucket>`, `OBJ_<bucket>`, `<KIND>_<space>`. */
function capturedBy(stream: string): string {
  if (stream.startsWith("KV_")) return `$KV.${stream.slice(3)}.>`;
  if (stream.startsWith("OBJ_")) return `$O.${stream.slice(4)}.>`;
  const [kind = "", ...space] = stream.split("_");
  return `cotal.${space.join("_")}.${WORDS[kind] ?? kind.toLowerCase()}.>`;
}
const WORDS: Readonly<Record<string, string>> = { DM: "inst", TASK: "svc" };

const subjectOf = (text: string): string => text.split(" ")[0] ?? "";

export const AUDIT_RULES: Readonly<Record<number, Rule>> = {
  1: fromTheMatrix,
  2: keptApart,
  3: fewConsumers,
  4: noOverhearing,
  5: noEcho,
};

/** Every breach of a decidable rule; empty where the credential is as the matrix says. */
export const audit = (audited: Audited): Finding[] =>
  Object.entries(AUDIT_RULES).flatMap(([rule, breaches]) =>
    breaches(audited).map((subject) => ({ rule: Number(rule), profile: audited.profile, subject })),
  );
