/** Whether anybody may still publish what accepted work waits for (lifecycles §3, "nobody left"). */
import { atOnce } from "../../../shared/at-once.ts";
import { STORE } from "../../../shared/limits.ts";
import { type EpCred, epCredRows } from "../../../shared/rows/credential.ts";
import { type EpGate, epGateRows } from "../../../shared/rows/gate.ts";
import type { Scan } from "../../../shared/store/store.ts";
import { type EndpointLabel, type Owner, splitPrincipal, type Uid } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";
import type { AuthContext } from "../context.ts";

/** One pass asks about many rows of few endpoints, so what was scanned is kept for the pass. */
export class WhoIsLeft {
  readonly #context: Pick<AuthContext, "store" | "ports">;
  readonly #work: Work;
  readonly #gates = new Map<EndpointLabel, Promise<Scan<EpGate>>>();
  readonly #gone = new Map<string, Promise<boolean>>();

  constructor(context: Pick<AuthContext, "store" | "ports">, work: Work) {
    this.#context = context;
    this.#work = work;
  }

  /**
   * At least one instance of the endpoint could have served these owners, and each of them has ended: its gate is
   * retired and no credential of it is good any more. An unreadable row could be of somebody who is left.
   */
  async nobody(endpoint: EndpointLabel, owners: readonly Owner[]): Promise<boolean> {
    const { entries, corrupt } = await this.#gatesOf(endpoint);
    if (corrupt.length > 0) return false;
    const could = entries.filter(({ value }) => serves(splitPrincipal(value.principal).owner, owners));
    if (could.length === 0 || could.some(({ value }) => value.state !== "retired")) return false;
    const gone = await atOnce(STORE.scansAtOnce, could, async ({ key }) => {
      const instanceId = epGateRows.parts(key.key)?.instanceId;
      return instanceId !== undefined && this.#isGone(endpoint, instanceId);
    });
    return gone.every(Boolean);
  }

  #gatesOf(endpoint: EndpointLabel): Promise<Scan<EpGate>> {
    const known = this.#gates.get(endpoint) ?? this.#context.store.scan(epGateRows, { endpoint }, this.#work);
    this.#gates.set(endpoint, known);
    return known;
  }

  #isGone(endpoint: EndpointLabel, instanceId: Uid): Promise<boolean> {
    const name = `${endpoint}.${instanceId}`;
    const known =
      this.#gone.get(name) ??
      this.#context.store.scan(epCredRows, { endpoint, instanceId }, this.#work).then((rows) => this.#lapsed(rows));
    this.#gone.set(name, known);
    return known;
  }

  /** A revoked row's JWT is good for the broker until it expires. */
  #lapsed({ entries, corrupt }: Scan<EpCred>): boolean {
    const now = this.#context.ports.now();
    return corrupt.length === 0 && entries.every(({ value }) => value.exp <= now);
  }
}

/** The target's, the caller's, or the space's own. */
const serves = (owner: Owner, owners: readonly Owner[]): boolean =>
  owner === "local" || owner.startsWith("p_") || owners.includes(owner);
