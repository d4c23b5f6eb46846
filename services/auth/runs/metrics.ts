/** What an operator watches of runs: requests that nobody saw, and run principals that may still be connected. */
import { Counter } from "prom-client";
import { registry } from "../../metrics.ts";

export const observations = new Counter({
  name: "auth_observations_total",
  help: "Run requests that a manager named: taken, absent (never seen, or taken before), unreadable",
  labelNames: ["result"],
  registers: [registry],
});

export const runEvictions = new Counter({
  name: "auth_run_evictions_total",
  help: "Evictions of runs that were revoked or taken over: gone, or unverified",
  labelNames: ["result"],
  registers: [registry],
});
