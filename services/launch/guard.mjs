/**
 * Ends the launcher's processes if the launcher itself is killed, which it notices by the end of its stdin.
 * Each line adds (`+<pid>`) or removes (`-<pid>`) one. Plain JavaScript, so that it is up in milliseconds.
 */
import { createInterface } from "node:readline";

const GRACE_MS = 10_000;
const POLL_MS = 50;

const pids = new Set();
for await (const line of createInterface({ input: process.stdin })) {
  const pid = Number(line.slice(1));
  if (line.startsWith("+")) pids.add(pid);
  else pids.delete(pid);
}

signalAll("SIGTERM");
for (let waited = 0; pids.size > 0 && waited < GRACE_MS; waited += POLL_MS) {
  await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  signalAll(0);
}
signalAll("SIGKILL");

/** Forgets those that have ended. */
function signalAll(signal) {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      pids.delete(pid);
    }
  }
}
