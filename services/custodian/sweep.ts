/** One sweep: discover, walk the accounts asked about, discover again (lifecycles §2.1). */
import { headerText } from "../../shared/errors.ts";
import type { Ports } from "../../shared/ports.ts";
import type { AccountNkey, Principal, ServerNkey } from "../../shared/tokens.ts";
import { type Expectation, judge, type Topology } from "./complete.ts";
import { type Asked, connzRequest, type Page, type Row, readPage, unanswered } from "./page.ts";
import { readStatsz, readVarz } from "./replies.ts";
import type { SystemAccount } from "./system.ts";

/** What one sweep saw of one account. */
export interface Walk {
  /** Every server that was asked, with its answer. */
  readonly pages: ReadonlyMap<ServerNkey, Page>;
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
  walk(account: AccountNkey): Walk;
}

export interface Connection extends Row {
  readonly server: ServerNkey;
}

export interface SweepOptions {
  readonly system: SystemAccount;
  readonly ports: Ports;
  readonly expectation: Expectation;
}

export async function sweep(options: SweepOptions, accounts: readonly AccountNkey[]): Promise<Sweep> {
  const startedAt = options.ports.monotonic();
  const before = await discover(options);
  const walked = new Map(
    await Promise.all(
      accounts.map(async (account) => [account, await walkServers(options.system, before, account)] as const),
    ),
  );
  const after = await discover(options);
  return {
    startedAt,
    authTimeoutMs: Math.max(before.authTimeoutMs, after.authTimeoutMs),
    walk(account) {
      const pages = walked.get(account);
      if (!pages) throw new RangeError("this sweep did not walk that account");
      const cause = before.cause ?? firstFault(before, pages) ?? after.cause ?? difference(before, after);
      if (cause === undefined) return { pages, complete: true };
      const heard = [...before.servers.values()].join(", ") || "none";
      return { pages, complete: false, note: headerText(`${cause}; servers heard: ${heard}`) };
    },
  };
}

/** The connections of a principal, on whichever server. */
export function connectionsOf(walk: Walk, principal: Principal): Connection[] {
  return [...walk.pages].flatMap(([server, { rows }]) =>
    rows.filter((row) => row.principal === principal).map((row) => ({ ...row, server })),
  );
}

async function discover({ system, expectation }: SweepOptions): Promise<Topology> {
  const [statsz, varz] = await Promise.all([system.ping("STATSZ"), system.ping("VARZ")]);
  return judge({ statsz: statsz.map(readStatsz), varz: varz.map(readVarz) }, expectation);
}

async function walkServers(
  system: SystemAccount,
  { servers }: Topology,
  account: AccountNkey,
): Promise<Map<ServerNkey, Page>> {
  const { connzLimit: limit } = system.limits;
  const walked = [...servers.keys()].map(async (server) => {
    const page = await readServer(system, { server, account, limit });
    return [server, page] as const;
  });
  return new Map(await Promise.all(walked));
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
