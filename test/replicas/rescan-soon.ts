/** Loaded before a replica's own code: one that stands by looks again soon, not after half a minute. */
import { RESCAN_MS } from "../../shared/limits.ts";
import { systemPorts } from "../../shared/ports.ts";

const SOON_MS = 500;
const { sleep } = systemPorts;

systemPorts.sleep = (ms, signal) => sleep(ms === RESCAN_MS ? SOON_MS : ms, signal);
