/**
 * The row `plane` says which replica runs retirements (lifecycles §4). It changes hands when its holder gives it up, or
 * on positive proof that the holder's connection is gone: no clock, no heartbeat and no override frees it.
 */
import { askConnectionLiveness, type CustodyClient } from "../../../shared/custody.ts";
import { isAuthorityError, type PlaneRefusal, unavailable } from "../../../shared/errors.ts";
import type { Tuple } from "../../../shared/nats/connect.ts";
import type { Ports } from "../../../shared/ports.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import { type Plane, planeRows } from "../../../shared/rows/plane.ts";
import { create, swap } from "../../../shared/store/message.ts";
import type { Store } from "../../../shared/store/store.ts";
import { lostOn } from "../../../shared/store/write.ts";
import type { Work } from "../../../shared/work.ts";

export interface Claiming {
  readonly store: Pick<Store, "read" | "commit">;
  /** Asks the custodian. */
  readonly peers: CustodyClient;
  readonly ports: Ports;
}

export interface Claimant {
  /** `<instanceId>.<processEpoch>.<26 random>`: names the holder for people. */
  readonly claimId: string;
  /** Of this replica's `scan` connection in the authority account. */
  readonly tuple: Tuple;
}

export type Attempt =
  | { readonly claim: Entry<Plane> }
  | {
      readonly refused: Extract<PlaneRefusal, "corrupt" | "live-peer" | "unknown" | "concurrent">;
      /** Whose the row is. */
      readonly holder?: Plane;
      readonly note?: string;
    };

const KEY = planeRows.key({});
const TRIES = 2;

/**
 * One try, which a lost swap repeats once. A fault of the store is `unavailable`. `stale` gives up asking about a holder
 * whose row has moved, and nothing else: what was sent to the store is waited for.
 */
export async function tryClaim(
  claiming: Claiming,
  claimant: Claimant,
  work: Work,
  stale?: AbortSignal,
): Promise<Attempt> {
  const asking: Work = stale
    ? { ...work, signal: AbortSignal.any([stale, ...(work.signal ? [work.signal] : [])]) }
    : work;
  for (let tries = 0; tries < TRIES; tries += 1) {
    const before = await readPlane(claiming, work);
    if (before === "corrupt") return { refused: "corrupt" };
    // Won by an earlier try whose answer came too late.
    if (before && isOf(before.value, claimant)) return { claim: before };
    const verdict = before?.value.state === "held" ? await proof(claiming, before.value, asking) : undefined;
    if (verdict) return verdict;
    const claim = await take(claiming, claimant, before, work);
    if (claim) return { claim };
  }
  return { refused: "concurrent" };
}

/** Held by the same incarnation under the connection that it still has. */
const isOf = ({ state, claimId, ledger }: Plane, claimant: Claimant): boolean =>
  state === "held" && ledger.userNkey === claimant.tuple.userNkey && whoOf(claimId) === whoOf(claimant.claimId);

const whoOf = (claimId: string): string => claimId.slice(0, claimId.lastIndexOf("."));

async function readPlane({ store }: Claiming, work: Work): Promise<Entry<Plane> | "corrupt" | undefined> {
  try {
    return await store.read(KEY, work);
  } catch (error) {
    if (isAuthorityError(error, "internal")) return "corrupt";
    throw error;
  }
}

/** Nothing where both of the holder's connections are proven gone; unknown never counts as that. */
async function proof({ peers, ports }: Claiming, holder: Plane, work: Work): Promise<Attempt | undefined> {
  const named = { ledger: holder.ledger, records: holder.records };
  const { ledger, records, note } = await askConnectionLiveness(peers, named, work, ports);
  const states = [ledger.state, records.state];
  if (states.every((state) => state === "gone")) return undefined;
  const refused = states.includes("live") ? "live-peer" : "unknown";
  return { refused, holder, ...(note === undefined ? {} : { note }) };
}

/** The claim as it was written, or nothing if the row moved first. */
async function take(
  { store, ports }: Claiming,
  { claimId, tuple }: Claimant,
  before: Entry<Plane> | undefined,
  work: Work,
): Promise<Entry<Plane> | undefined> {
  const value: Plane = {
    v: 1,
    generation: (before?.value.generation ?? 0) + 1,
    claimId,
    state: "held",
    ledger: tuple,
    records: tuple,
    openedAt: new Date(ports.now()).toISOString(),
  };
  try {
    const [revision = 0] = await store.commit([before ? swap(before, value) : create(KEY, value)], work);
    return { key: KEY, value, revision };
  } catch (error) {
    if (lostOn(error)) return undefined;
    if (!isAuthorityError(error, "unavailable")) throw error;
    const now = await store.read(KEY, work);
    if (now?.value.claimId === claimId) return now;
    throw error;
  }
}

/** Gives a claim up. `lost` where the row has become another's meanwhile; unconfirmed, it throws and may be repeated. */
export async function releaseClaim(
  store: Claiming["store"],
  claim: Entry<Plane>,
  work: Work,
): Promise<"released" | "lost"> {
  try {
    await store.commit([swap(claim, { ...claim.value, state: "released" })], work);
    return "released";
  } catch (error) {
    // An answer that was lost before may have been of this very release.
    const now = await store.read(KEY, work).catch((cause: unknown) => {
      if (isAuthorityError(cause, "internal")) return undefined; // unreadable, so not what was written here
      throw unavailable("release-unreachable", cause, "unknown");
    });
    if (now?.value.claimId !== claim.value.claimId) return "lost";
    if (now.value.state === "released") return "released";
    throw unavailable("release-unreachable", error, "unknown");
  }
}
