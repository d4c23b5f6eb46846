/** The system user never expires, so its age is told: once a day to the log, and as a metric (identity §1.1). */
import type { Logger } from "pino";
import { Gauge } from "prom-client";
import { CUSTODIAN } from "../../shared/limits.ts";
import type { Ports } from "../../shared/ports.ts";

let ageNow: (() => number) | undefined;
new Gauge({
  name: "custodian_credential_age_seconds",
  help: "Age of the credential with which the custodian asks the servers",
  collect() {
    if (ageNow) this.set(ageNow());
  },
});

/** `issuedAtS` is the credential's `iat`. Ends with the signal. */
export async function tellCredentialAge(
  issuedAtS: number,
  ports: Ports,
  log: Pick<Logger, "info">,
  signal: AbortSignal,
): Promise<void> {
  ageNow = () => Math.max(0, Math.floor(ports.now() / 1_000) - issuedAtS);
  while (!signal.aborted) {
    log.info({ custodian_credential_age_seconds: ageNow() }, "age of the system credential");
    await ports.sleep(CUSTODIAN.tellAgeMs, signal).catch(() => {});
  }
}
