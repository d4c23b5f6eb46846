/** JSON log lines on stderr. What must never stand in one is taken out even where somebody put it in. */
import { type DestinationStream, destination, type LevelWithSilent, type Logger, pino } from "pino";

const SECRET_FIELDS = [
  "actorToken",
  "auth",
  "auth_token",
  "authorization",
  "bearer",
  "cap",
  "creds",
  "idpToken",
  "jwt",
  "password",
  "privateJwk",
  "secret",
  "seed",
  "sentinelCreds",
  "signingSeed",
  "token",
] as const;

export const LOG_LEVELS = ["silent", "error", "warn", "info", "debug"] as const satisfies LevelWithSilent[];
export type LogLevel = (typeof LOG_LEVELS)[number];

/** `sync`, so that the last line before an exit is there. */
export function createLog(level: LogLevel, to: DestinationStream = destination({ fd: 2, sync: true })): Logger {
  const paths = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);
  return pino({ level, redact: { paths, censor: "[redacted]" } }, to);
}
