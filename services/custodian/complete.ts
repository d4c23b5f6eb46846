/** Whether every server was heard, judged from what they say of one another (lifecycles §2.2, rules a to f). */
import type { ServerNkey } from "../../shared/tokens.ts";
import type { Statsz, Varz } from "./replies.ts";

/** The replies to one discovery, in order of arrival; `undefined` for each that could not be read. */
export interface Discovery {
  readonly statsz: readonly (Statsz | undefined)[];
  readonly varz: readonly (Varz | undefined)[];
}

export interface Topology {
  /** Every server heard, by id, with its name: also those of an incomplete discovery. */
  readonly servers: ReadonlyMap<ServerNkey, string>;
  /** The longest that any of them lets a client take to authenticate. */
  readonly authTimeoutMs: number;
  /** Why it cannot be known that these are all; absent if they are. */
  readonly cause?: string;
}

/** The setting `expectedServers`, where given (rule f), and how many servers are walked at most. */
export interface Expectation {
  readonly expectedServers?: number;
  readonly maxServers: number;
}

export function judge({ statsz, varz }: Discovery, expectation: Expectation): Topology {
  const heard = { statsz: readable(statsz), varz: readable(varz) };
  const servers = new Map([...heard.statsz, ...heard.varz].map(({ id, name }) => [id, name]));
  const unreadable = (statsz.includes(undefined) && "STATSZ") || (varz.includes(undefined) && "VARZ");
  const cause =
    statsz.length > expectation.maxServers || varz.length > expectation.maxServers
      ? `more than ${expectation.maxServers} servers answer`
      : unreadable
        ? `a ${unreadable} reply is unreadable`
        : firstCause(heard, expectation);
  return {
    servers,
    authTimeoutMs: Math.max(0, ...heard.varz.map(({ authTimeoutMs }) => authTimeoutMs)),
    ...(cause === undefined ? {} : { cause }),
  };
}

interface Heard {
  readonly statsz: readonly Statsz[];
  readonly varz: readonly Varz[];
}

type Rule = (heard: Heard, expectation: Expectation) => string | undefined;

/** Rule a. A duplicate is a contradiction. */
const oneReplyEach: Rule = ({ statsz, varz }) => {
  if (statsz.length === 0) return "no server answers STATSZ";
  for (const [kind, replies] of [
    ["STATSZ", statsz],
    ["VARZ", varz],
  ] as const) {
    const twice = repeated(replies.map(({ id }) => id));
    if (twice !== undefined) return `server ${twice} answers ${kind} twice`;
    const name = repeated(replies.map(({ name }) => name));
    if (name !== undefined) return `two servers are named ${name}`;
  }
  const other = new Map(varz.map((reply) => [reply.id, reply]));
  for (const { id, name, cluster } of statsz) {
    const same = other.get(id);
    if (!same) return `server ${name} does not answer VARZ`;
    if (same.name !== name || same.cluster !== cluster) return `server ${id} gives two names`;
    other.delete(id);
  }
  const [left] = other.values();
  return left && `server ${left.name} does not answer STATSZ`;
};

/** Rule b, as far as servers tell; leafnode connections stand in the account's pages. */
const noGateways: Rule = ({ statsz, varz }) => {
  const at = [...statsz, ...varz].find(({ gateways }) => gateways);
  return at && `server ${at.name} has gateways`;
};

/** Rule c: a server alone, which says nothing of any other. The rules for clusters do not apply to it. */
const isSingle = ({ statsz }: Heard): boolean =>
  statsz.length === 1 &&
  statsz.every(({ cluster, routes, metaSize }) => cluster === "" && routes.length === 0 && metaSize === undefined);

/** Rule d. A server that another has a route to, and that does not answer, is unknown. */
const oneMesh: Rule = (heard) => {
  if (isSingle(heard)) return undefined;
  const { statsz } = heard;
  const clusters = new Set(statsz.map(({ cluster }) => cluster));
  if (clusters.has("")) return "a server outside any cluster answers beside others";
  if (clusters.size > 1) return "servers of two clusters answer";
  const names = new Set(statsz.map(({ name }) => name));
  for (const { name, routes } of statsz) {
    const silent = routes.find((route) => !names.has(route));
    if (silent !== undefined) return `server ${name} has a route to ${silent}, which does not answer`;
    const known = new Set([name, ...routes]);
    const unrouted = [...names].find((other) => !known.has(other));
    if (unrouted !== undefined) return `server ${name} has no route to ${unrouted}`;
  }
  return undefined;
};

/** Rule e. A lost peer stays in the meta group until it is removed from it. */
const wholeMetaGroup: Rule = (heard) => {
  if (isSingle(heard)) return undefined;
  const sizes = heard.statsz.flatMap(({ metaSize }) => (metaSize === undefined ? [] : [metaSize]));
  if (sizes.length === 0) return "no server of the cluster reports a JetStream meta group";
  const size = Math.max(...sizes);
  return sizes.length < size ? `${sizes.length} of the ${size} servers in the meta group answer` : undefined;
};

/** Rule f. Nothing but the setting remembers a server without JetStream. */
const asExpected: Rule = ({ statsz }, { expectedServers }) => {
  if (expectedServers === undefined) {
    const without = statsz.find(({ jetstream }) => !jetstream);
    return without && `server ${without.name} runs without JetStream and expectedServers is not set`;
  }
  return expectedServers === statsz.length ? undefined : `${statsz.length} of ${expectedServers} servers answer`;
};

const rules: readonly Rule[] = [oneReplyEach, noGateways, oneMesh, wholeMetaGroup, asExpected];

function firstCause(heard: Heard, expectation: Expectation): string | undefined {
  for (const rule of rules) {
    const cause = rule(heard, expectation);
    if (cause !== undefined) return cause;
  }
  return undefined;
}

const readable = <T>(replies: readonly (T | undefined)[]): T[] => replies.filter((reply) => reply !== undefined);

const repeated = (values: readonly string[]): string | undefined =>
  values.find((value, index) => values.indexOf(value) !== index);
