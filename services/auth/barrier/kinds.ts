/** Every kind of barrier: what it does after its freeze, in order, and what differs between them (state §4). */
import type { Cred, EpCred } from "../../../shared/rows/credential.ts";
import type { Entry } from "../../../shared/rows/family.ts";
import type { Op } from "../../../shared/rows/members.ts";
import type { At, Message } from "../../../shared/store/message.ts";
import type { Principal, Uid } from "../../../shared/tokens.ts";
import type { Work } from "../../../shared/work.ts";

export type Step = "touch" | "contain" | "evict" | "drain" | "frontier" | "finish";

interface Kind {
  /** As gates and stages name it. */
  readonly op: Op["kind"];
  readonly steps: readonly Step[];
  /** `verified`: nothing further happens while one holder may still be connected. `reported`: it fails nothing. */
  readonly eviction: "verified" | "reported";
  /** The phase of its stage at the end. */
  readonly end: "finished" | "aborted";
}

const GATE_ALONE = ["contain", "evict", "finish"] as const;

export const KINDS = {
  /** Of a lifecycle; whoever holds the plane claim runs it. */
  retirement: {
    op: "retirement",
    steps: ["touch", "contain", "evict", "drain", "frontier", "finish"],
    eviction: "verified",
    end: "finished",
  },
  /** Of an endpoint instance under its next epoch; its registrar runs it. */
  registration: { op: "registration", steps: GATE_ALONE, eviction: "verified", end: "finished" },
  /** Of a registration whose registrant is proven dead; takes over its freeze. */
  repair: { op: "registration", steps: GATE_ALONE, eviction: "verified", end: "aborted" },
  /** Of an endpoint instance for good. Nothing renews and every `exp` bounds the rest, so its eviction comes last. */
  "instance-end": { op: "retirement", steps: ["contain", "finish", "evict"], eviction: "reported", end: "finished" },
} as const satisfies Readonly<Record<string, Kind>>;

export type KindName = keyof typeof KINDS;

/** What a barrier has come to know on its way. */
export interface Contained {
  /** Every row of the kind, in whatever state, as the scan showed them in which none was active. */
  readonly rows: readonly Entry<Cred | EpCred>[];
  /** Those that this run revoked. */
  readonly revoked: readonly Entry<Cred | EpCred>[];
  /** Who is evicted: the holders, and whom the kind names besides. */
  readonly principals: readonly Principal[];
}

/** One barrier under way, its gate frozen by `opId`. */
export interface Barrier<T> {
  readonly kind: KindName;
  readonly opId: Uid;
  /** In every commit: the gate, or in a retirement the plane. */
  readonly fence: At<unknown>;
  /** The bounds of the next step. */
  work(): Work;
  /** Runs what is believed only if the fence stood before and after it; the gate needs none, a commit tells. */
  hold<V>(believed: () => Promise<V>): Promise<V>;
  /** Throws where the barrier has to stop before its next step. */
  proceed(): void;
  touch?(work: Work): Promise<void>;
  rows(work: Work): Promise<readonly Entry<Cred | EpCred>[]>;
  /** Evicted beside the holders of the rows. */
  readonly also?: readonly Principal[];
  drain?(work: Work): Promise<void>;
  frontier?(work: Work): Promise<void>;
  /** The end: `end` commits it together with the stage, and gives the revisions of these messages. */
  finish(contained: Contained, end: (along: readonly Message[]) => Promise<number[]>, work: Work): Promise<T>;
}

/** A step that was done, or within one a commit: what a test may stop a process after. */
export type Moment = "freeze" | "revoke" | Step;

/** Told after each; the next one waits for it. */
export type AfterStep = (at: { readonly kind: KindName; readonly opId: Uid; readonly step: Moment }) => Promise<void>;

/** A barrier that its own gate fences and one request or start runs. */
export const gateFenced = (work: Work): Pick<Barrier<unknown>, "work" | "hold" | "proceed"> => ({
  work: () => work,
  hold: (believed) => believed(),
  proceed: () => {},
});
