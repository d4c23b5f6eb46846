/** One sweep: discover, walk the accounts asked about, discover again (lifecycles §2.1). */
import { headerText } from "../../shared/errors.ts";
import type { Ports } from "../../shared/ports.ts";
import type { AccountNkey, Principal, ServerNkey } from "../../shared/tokens.ts";
import { type Expectation, judge, type Topology } from "./complete.ts";
import { type Asked, connzRequest, type Page, readPage, unanswered } from "./page.ts";
import { readStatsz, readVarz } from "./replies.ts";
import type { SystemAccount } from "./system.ts";

/** What one sweep saw of one account. */
export interface Walk {
  /** Every server that was asked, with its answer. */
  readonly pages: ReadonlyMap<ServerNkey, Page>;
  /** The connections of each principal, on whichever server. */
  readonly connections: ReadonlyMap<Principal, readonly Connection[]>;
  /** Nobody can have been overlooked. */
  readonly complete: boolean;
  /** Where incomplete, the first cause and who was heard. */
  readonly note?: string;
}

export interface Sweep {
  /** Monotonic ms. Whoever was connected then, and still is, was seen. */
  readonly startedAt: number;
  /** The longest that any server heard lets a client take to authenticate. */
  readonly authTimeoutMs: number;
  /** Of an account that was asked about. */
  walk(account: AccountNkey): Walk;
}

export interface Connection {
  readonly server: ServerNkey;
  readonly cid: number;
}

export interface SweepOptions {
  readonly system: SystemAccount;
  readonly ports: Ports;
  readonly expectation: Expectation;
}

export async function sweep(options: SweepOptions, accounts: readonly AccountNkey[]): Promise<Sweep> {
  const startedAt = options.ports.monotonic();
  const before = await discover(options);
  const pages = await Promise.all(accounts.map((account) => readServers(options.system, before, account)));
  const after = await discover(options);
  const walks = new Map(pages.map((read, index) => [accounts[index], judgeWalk(before, read, after)]));
  return {
    startedAt,
    authTimeoutMs: Math.max(before.authTimeoutMs, after.authTimeoutMs),
    walk(account) {
      const walk = walks.get(account);
      if (!walk) throw new RangeError("this sweep did not walk that account");
      return walk;
    },
  };
}

function judgeWalk(before: Topology, pages: ReadonlyMap<ServerNkey, Page>, after: Topology): Walk {
  const connections = new Map<Principal, Connection[]>();
  for (const [server, { rows }] of pages) {
    for (const { cid, principal } of rows) {
      if (principal === undefined) continue;
      const known = connections.get(principal);
      if (known) known.push({ server, cid });
      else connections.set(principal, [{ server, cid }]);
    }
  }
  const cause = before.cause ?? firstFault(before, pages) ?? after.cause ?? difference(before, after);
  if (cause === undefined) return { pages, connections, complete: true };
  const heard = [...before.servers.values()].join(", ") || "none";
  return { pages, connections, complete: false, note: headerText(`${cause}; servers heard: ${heard}`) };
}

async function discover({ system, expectation }: SweepOptions): Promise<Topology> {
  const [statsz, varz] = await Promise.all([system.ping("STATSZ"), system.ping("VARZ")]);
  return judge({ statsz: statsz.map(readStatsz), varz: varz.map(readVarz) }, expectation);
}

async function readServers(
  system: SystemAccount,
  { servers }: Topology,
  account: AccountNkey,
): Promise<Map<ServerNkey, Page>> {
  const { connzLimit: limit } = system.limits;
  const read = [...servers.keys()].map(async (server) => {
    const page = await readServer(system, { server, account, limit });
    return [server, page] as const;
  });
  return new Map(await Promise.all(read));
}

async function readServer(system: SystemAccount, asked: Asked): Promise<Page> {
  const { connzTries, connzTimeoutMs } = system.limits;
  for (let attempt = 0; attempt < connzTries; attempt += 1) {
    const data = await system.ask(asked.server, "CONNZ", connzRequest(asked), connzTimeoutMs);
    if (data) return readPage(data, asked);
  }
  return unanswered;
}

/** Rule g of lifecycles §2.2. */
function firstFault({ servers }: Topology, pages: ReadonlyMap<ServerNkey, Page>): string | undefined {
  for (const [id, { fault, unattributed }] of pages) {
    const cause = fault ?? unattributed;
    if (cause !== undefined) return `server ${servers.get(id) ?? id}: ${cause}`;
  }
  return undefined;
}

/** A server that joined in between was not walked; one that left may have kept its clients. */
function difference(before: Topology, after: Topology): string | undefined {
  for (const [id, name] of after.servers) if (!before.servers.has(id)) return `server ${name} joined meanwhile`;
  for (const [id, name] of before.servers) if (!after.servers.has(id)) return `server ${name} left meanwhile`;
  return undefined;
}
