/** What is interrupted: one barrier of each kind and door. */
import type { KindName, Moment } from "../../services/auth/barrier/kinds.ts";
import type { Entry } from "../../shared/rows/family.ts";
import type { Message } from "../../shared/store/message.ts";
import type { TestSpace } from "../kit/space.ts";
import type { Death } from "./auth.ts";
import { endedSupervisor, registration, repair, retiredInstance } from "./instances.ts";
import { agent, person } from "./lifecycles.ts";

/** A barrier that a process is to die in. */
export interface Victim {
  readonly what: string;
  readonly death: Death;
  /** Also the repeat. */
  ask(): Promise<unknown>;
  /** Brings it to its end once another replica serves, and remembers what it was like when that began. */
  finish(): Promise<void>;
  /** Asked once more, it answers so and writes nothing. */
  again(): Promise<void>;
  /** It happened once, and its rows are as they must be. */
  check(): Promise<void>;
  /** What a predecessor may still have under way: its next step, and a mint from before. */
  late(plane: Entry<unknown>): Promise<Message[][]>;
}

export type Makes = (space: TestSpace, step: Moment) => Promise<Victim>;

/** Every kind, by every door, with its moments. */
export const KINDS: readonly { readonly makes: Makes; readonly kind: KindName; readonly steps: readonly Moment[] }[] = [
  {
    makes: person,
    kind: "retirement",
    steps: ["freeze", "touch", "revoke", "contain", "evict", "drain", "frontier", "finish"],
  },
  {
    makes: agent,
    kind: "retirement",
    steps: ["freeze", "touch", "revoke", "contain", "evict", "drain", "frontier", "finish"],
  },
  { makes: retiredInstance, kind: "instance-end", steps: ["freeze", "revoke", "contain", "finish", "evict"] },
  { makes: endedSupervisor, kind: "instance-end", steps: ["freeze", "revoke", "contain", "finish", "evict"] },
  { makes: repair, kind: "repair", steps: ["revoke", "contain", "evict", "finish"] },
  { makes: registration, kind: "registration", steps: ["freeze", "revoke", "contain", "evict", "finish"] },
];
