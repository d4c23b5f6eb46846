/**
 * Evicts principals and proves principals and connections gone, for whole rounds of requests (lifecycles §2).
 * It reads no store and decides nothing about authority.
 */
import type { Logger } from "pino";
import type { ConnectionLiveness, Eviction, PrincipalLiveness } from "../../shared/custody.ts";
import { AuthorityError, unavailable } from "../../shared/errors.ts";
import type { Tuple } from "../../shared/nats/connect.ts";
import type { Ports } from "../../shared/ports.ts";
import type { AccountNkey, Principal } from "../../shared/tokens.ts";
import type { Work } from "../../shared/work.ts";
import { type EvictAsk, evict } from "./evict.ts";
import { connectionState, principalState } from "./liveness.ts";
import { readKick } from "./replies.ts";
import { type Member, Rounds } from "./round.ts";
import { type Connection, type Sweep, sweep, type Walk } from "./sweep.ts";
import type { SystemAccount } from "./system.ts";

export interface CustodianOptions {
  readonly system: SystemAccount;
  /** Whether the system account can be asked now. */
  readonly connected: () => boolean;
  readonly accounts: { readonly space: AccountNkey; readonly authority: AccountNkey };
  /** The setting `expectedServers`. */
  readonly expectedServers?: number;
  /** Whoever this custodian or its asker is connected as: evicting them would cut off the asker. */
  readonly untouchable: ReadonlySet<Principal>;
  readonly ports: Ports;
  readonly log: Pick<Logger, "info" | "warn">;
  /** Aborts what waits when the service closes. */
  readonly signal?: AbortSignal;
}

export interface ConnectionPair {
  readonly ledger: Tuple;
  readonly records: Tuple;
}

interface PrincipalAsk {
  readonly principal: Principal;
  readonly answer: (result: PrincipalLiveness) => void;
}
interface ConnectionAsk {
  readonly connections: ConnectionPair;
  readonly answer: (result: ConnectionLiveness) => void;
}
type Ask = EvictAsk | PrincipalAsk | ConnectionAsk;

export class Custodian {
  readonly #options: CustodianOptions;
  readonly #rounds: Rounds<Ask>;

  constructor(options: CustodianOptions) {
    this.#options = options;
    const { ports, system } = options;
    const { maxTargets } = system.limits;
    this.#rounds = new Rounds({ ports, maxTargets, run: (members) => this.#runUnlessClosing(members) });
  }

  /**
   * Results in the order of `principals`. `failed-precondition` for an untouchable one, `resource-exhausted` without
   * room in the next round, `unavailable` without the system account; nobody was kicked then.
   */
  async evictPrincipals(principals: readonly Principal[], work: Work): Promise<Eviction[]> {
    this.#refuseUntouchable(principals);
    return this.#join(principals.length, work, (answer) => ({ principals, answer }));
  }

  /** One sweep; nobody is kicked. Codes as above. */
  async principalLiveness(principal: Principal, work: Work): Promise<PrincipalLiveness> {
    this.#refuseUntouchable([principal]);
    return this.#join(1, work, (answer) => ({ principal, answer }));
  }

  /** Of two connections in the authority account. Codes as above but the first. */
  async connectionLiveness(connections: ConnectionPair, work: Work): Promise<ConnectionLiveness> {
    return this.#join(2, work, (answer) => ({ connections, answer }));
  }

  #refuseUntouchable(principals: readonly Principal[]): void {
    if (!principals.some((principal) => this.#options.untouchable.has(principal))) return;
    throw new AuthorityError("failed-precondition", "a target is who asks, or the custodian itself");
  }

  #join<R>(targets: number, work: Work, ask: (answer: (result: R) => void) => Ask): Promise<R> {
    this.#rounds.assertRoom(targets);
    if (!this.#options.connected()) throw unavailable("the system account is not connected", undefined, "not-executed");
    return this.#rounds.join(targets, work, ask);
  }

  async #runUnlessClosing(members: readonly Member<Ask>[]): Promise<void> {
    const { signal } = this.#options;
    try {
      signal?.throwIfAborted();
      await this.#run(members);
    } catch (error) {
      throw signal?.aborted ? unavailable("the custodian is closing", error) : error;
    }
  }

  async #run(members: readonly Member<Ask>[]): Promise<void> {
    const { space, authority } = this.#options.accounts;
    const ofConnections = members.filter((member) => isKind(member, "connections"));
    const accounts = [
      ...(ofConnections.length < members.length ? [space] : []),
      ...(ofConnections.length > 0 ? [authority] : []),
    ];
    const first = await this.#sweep(accounts);
    for (const { ask } of members) {
      if ("principal" in ask) ask.answer(livenessOf(ask.principal, first.walk(space)));
      else if ("connections" in ask) ask.answer(connectionsState(ask.connections, first.walk(authority)));
    }
    const evictions = members.filter((member) => isKind(member, "principals"));
    if (evictions.length > 0) await this.#evict(evictions, first);
  }

  #evict(members: readonly Member<EvictAsk>[], first: Sweep): Promise<void> {
    const { accounts, system, ports, signal } = this.#options;
    return evict(members, first, {
      account: accounts.space,
      sweep: () => this.#sweep([accounts.space]),
      kick: (connection) => this.#kick(connection),
      ports,
      limits: system.limits,
      ...(signal ? { signal } : {}),
    });
  }

  async #sweep(accounts: readonly AccountNkey[]): Promise<Sweep> {
    const { system, ports, expectedServers, log } = this.#options;
    const { maxServers } = system.limits;
    const expectation = { maxServers, ...(expectedServers === undefined ? {} : { expectedServers }) };
    const result = await sweep({ system, ports, expectation }, accounts);
    for (const account of accounts) {
      const { pages, complete, note } = result.walk(account);
      const fields = { account, servers: pages.size, complete, ms: Math.round(ports.monotonic() - result.startedAt) };
      if (complete) log.info(fields, "sweep");
      else log.warn({ ...fields, note }, "incomplete sweep");
    }
    return result;
  }

  async #kick({ server, cid }: Connection): Promise<"kicked" | "gone" | undefined> {
    const { system } = this.#options;
    const answer = await system.ask(server, "KICK", { cid }, system.limits.kickTimeoutMs);
    return answer && readKick(answer, server);
  }
}

function isKind<K extends "principals" | "connections">(
  member: Member<Ask>,
  kind: K,
): member is Member<Extract<Ask, Record<K, unknown>>> {
  return kind in member.ask;
}

function livenessOf(principal: Principal, walk: Walk): PrincipalLiveness {
  const state = principalState(walk, principal);
  return { principal, state, sweepComplete: walk.complete, ...(walk.note === undefined ? {} : { note: walk.note }) };
}

function connectionsState(pair: ConnectionPair, walk: Walk): ConnectionLiveness {
  const ledger = { tuple: pair.ledger, state: connectionState(walk, pair.ledger) };
  const records = { tuple: pair.records, state: connectionState(walk, pair.records) };
  const sweepComplete = ledger.state !== "unknown" && records.state !== "unknown";
  const { note = "the id of a connection is another user's" } = walk;
  return { ledger, records, sweepComplete, ...(sweepComplete ? {} : { note }) };
}
