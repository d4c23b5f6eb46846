/** The one log line of a connect request (identity §9.2). It never holds a bearer, a JWT or a seed. */
import type { Logger } from "pino";
import type { ErrorCode } from "../../shared/errors.ts";

/** The message by which these lines are found. */
export const CONNECT_LINE = "connect";

/** Who connects, as far as a valid bearer said. */
export interface Caller {
  principal?: string;
  uid?: string;
  credentialId?: string;
  view?: string;
}

export interface ConnectLine extends Readonly<Caller> {
  /** What a denial tells the broker. */
  readonly ref: string;
  readonly decision: "admitted" | "denied" | "silent";
  readonly code?: ErrorCode;
  /** Number and name of the step that denied. */
  readonly step?: number;
  readonly check?: string;
  /** For people; may name rows. */
  readonly reason?: string;
  readonly serverId?: string;
  readonly clientHost?: string | undefined;
  readonly clientId?: number | undefined;
  readonly ms: number;
}

export function logConnect(log: Logger, line: ConnectLine): void {
  if (line.decision === "admitted") log.info(line, CONNECT_LINE);
  else log.warn(line, CONNECT_LINE);
}
