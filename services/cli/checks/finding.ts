/** What one check of `doctor` found. */
export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  /** What is there. */
  readonly found: string;
  /** What to change, where something is wrong. */
  readonly do?: string;
}

export const good = (check: string, found: string): Finding => ({ check, ok: true, found });
export const bad = (check: string, found: string, remedy: string): Finding => ({ check, ok: false, found, do: remedy });

/** Puts what was changed in the broker's files in force. */
export const RELOAD = "nats-server --signal reload";
