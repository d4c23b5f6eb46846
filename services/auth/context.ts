/** What the operations of `auth` work with; one value, made at start. */
import type { Logger } from "pino";
import type { AuthorityClient } from "../../shared/client.ts";
import type { KeyPair } from "../../shared/credentials/nkeys.ts";
import type { MeshStreams } from "../../shared/credentials/profiles/profile.ts";
import type { Ports } from "../../shared/ports.ts";
import type { Store } from "../../shared/store/store.ts";
import type { AccountNkey, EndpointLabel, Owner, Space, Uid } from "../../shared/tokens.ts";
import type { Mailbox } from "./actors/mailbox.ts";
import type { AfterStep } from "./barrier/kinds.ts";
import type { PlaneClaim } from "./barrier/plane.ts";
import type { Retirements } from "./barrier/retirements.ts";

export { MANAGER } from "../../shared/tokens.ts";

export const AUTH = "auth" as string as EndpointLabel;
export const LOCAL = "local" as string as Owner;

/** The data account: whom its credentials are for, who signs them, and under which keys proof K may stand. */
export interface DataAccount {
  readonly account: AccountNkey;
  readonly signer: KeyPair;
  /** The signing seed's text, and the previous one's while there is one. */
  readonly proofKeys: readonly string[];
}

export interface AuthContext {
  readonly space: Space;
  readonly data: DataAccount;
  readonly standingTtlS: number;
  readonly store: Store;
  readonly ports: Ports;
  readonly log: Logger;
  /** Asks `exchange` and the custodian, as `local.auth`. */
  readonly peers: AuthorityClient;
  readonly mailbox: Mailbox;
  /** Which replica runs retirements, and those that run in this one. */
  readonly plane: Pick<PlaneClaim, "held" | "reason">;
  readonly retirements: Pick<Retirements, "run">;
  /** The instance of this process. */
  readonly instanceId: Uid;
  /** The hosting incarnation, for `stage.startedBy`. */
  readonly startedBy: string;
  readonly streams?: MeshStreams;
  /** Where an agent exchanges its token; absent without a public face. */
  readonly publicUrl?: string;
  /** What everybody presents beside a bearer. */
  readonly sentinelCreds: string;
  /** Told after each step of a barrier, which goes on once it has returned. */
  readonly afterStep?: AfterStep;
}
