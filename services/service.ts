/** What every micro-service of ours is given at its start, and what the process that hosts it gets back. */
import type { Logger } from "pino";
import type { OwnedConnections } from "../shared/nats/owned.ts";
import type { Ports } from "../shared/ports.ts";
import type { SpaceFiles, SpaceSettings } from "../shared/secrets/settings.ts";
import type { SecretStore } from "../shared/secrets/store.ts";
import type { Space, Uid } from "../shared/tokens.ts";

/** In the order in which one process starts them (lifecycles §8.1). */
export const SERVICES = ["custodian", "auth", "exchange", "callout"] as const;
export type HostedService = (typeof SERVICES)[number];

export interface ServiceDeps {
  readonly space: Space;
  readonly settings: SpaceSettings;
  readonly servers: string | string[];
  /** This service's own view: any other key throws (identity §1.1). */
  readonly secrets: SecretStore;
  readonly ports: Ports;
  readonly log: Logger;
  readonly owned: OwnedConnections;
  /** Pins, sentinel and instance files, wherever the host keeps them. */
  readonly files: SpaceFiles;
  /** Slot of `auth`, whose instance id is kept in `files`; the other services draw one per start. */
  readonly instance: string;
  /** The hosting incarnation, for logs and `stage.startedBy`. */
  readonly hostUid: Uid;
  /** Life of standing credentials in seconds. */
  readonly standingTtlS: number;
  /** A development identity provider is tolerated. */
  readonly development: boolean;
  /** Aborts when the start is given up: whoever waits for a broker, store or peer stops waiting. */
  readonly signal: AbortSignal;
  /**
   * Tells that broker and store were found, so that what the start still waits for, a registration's proof, may take
   * as long as it takes. Until then, or the end of the start, `signal` aborts after a minute (lifecycles §8.4).
   */
  readonly foundStore?: () => void;
  /** Semantic version of the package. */
  readonly version: string;
}

/** Why a service ended itself; `closed` is the answer to `close` (lifecycles §8.5). */
export type EndReason = "closed" | "superseded" | "drift" | "broker-lost" | "subscription-lost";

export interface RunningService {
  readonly name: HostedService;
  /** False while its broker is lost, its reader or a shape unproven, or its gate unread (lifecycles §8.2). */
  ready(): boolean;
  /** Stops taking requests and finishes those in flight; repeatable. */
  drain(): Promise<void>;
  /** Drains, then gives up everything but its connections, which the process closes in order; repeatable after a failure. */
  close(): Promise<void>;
  /** Resolves when the service ended; never rejects. */
  readonly ended: Promise<EndReason>;
}

/** Resolves once requests are subscribed and flushed. Rejects having closed what it opened, with its first error. */
export type StartService = (deps: ServiceDeps) => Promise<RunningService>;
