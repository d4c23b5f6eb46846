/**
 * The entry of a replica of `auth` that a test may end in the middle of a barrier: the real service in a process of its
 * own, which kills itself after a step, or stops before a commit until it is told to go on. Its log goes to stdout.
 */
import { pino } from "pino";
import type { AfterStep, KindName, Moment } from "../../services/auth/barrier/kinds.ts";
import { startAuth } from "../../services/auth/start.ts";
import { RESCAN_MS } from "../../shared/limits.ts";
import { OwnedConnections, runCloseSteps } from "../../shared/nats/owned.ts";
import { newUid, type Ports, systemPorts } from "../../shared/ports.ts";
import { directoryStore } from "../../shared/secrets/directory.ts";
import { openFolder } from "../../shared/secrets/folder.ts";
import { viewKeys } from "../../shared/secrets/keys.ts";
import { spaceFiles } from "../../shared/secrets/settings.ts";
import { Store } from "../../shared/store/store.ts";
import type { Space } from "../../shared/tokens.ts";

/** After this step of an operation, or of the first of its kind that comes to it. */
export interface Death {
  readonly kind: KindName;
  readonly step: Moment;
  readonly opId?: string;
  /** Not of the own registration: only once the replica serves. */
  readonly serving?: true;
}

export interface Task {
  readonly stateDir: string;
  readonly space: Space;
  readonly servers: string | string[];
  /** Slot of `auth`. */
  readonly instance: string;
  /** ms between rescans, so that a replica that stands by takes over soon. */
  readonly rescanMs?: number;
  /** Barriers that end nowhere else than after their step; once all of them stand there, the process is killed. */
  readonly dies?: readonly Death[];
  /** Stops, as by SIGSTOP from outside, before it sends the first commit that writes a key with this prefix. */
  readonly pausesBefore?: string;
}

const task = JSON.parse(process.argv[2] ?? "{}") as Task;
const { stateDir, space, servers, instance, rescanMs = RESCAN_MS, dies, pausesBefore } = task;
const ports: Ports = {
  ...systemPorts,
  sleep: (ms, signal) => systemPorts.sleep(ms === RESCAN_MS ? rescanMs : ms, signal),
};

const awaited = [...(dies ?? [])];
const standing = new Set<string>();
let serves = false;

const afterStep: AfterStep = async ({ kind, step, opId }) => {
  const here = awaited.findIndex(
    (death) =>
      death.kind === kind &&
      death.step === step &&
      (death.opId ?? opId) === opId &&
      (serves || !death.serving) &&
      !standing.has(opId),
  );
  if (here < 0) return;
  awaited.splice(here, 1);
  standing.add(opId);
  if (awaited.length === 0) process.kill(process.pid, "SIGKILL");
  await new Promise(() => {}); // until the signal has come
};

if (pausesBefore !== undefined) {
  const { commit } = Store.prototype;
  let paused = false;
  Store.prototype.commit = function (messages, work) {
    if (!paused && messages.some(({ key }) => key.startsWith(pausesBefore))) {
      paused = true;
      process.kill(process.pid, "SIGSTOP");
    }
    return commit.call(this, messages, work);
  };
}

const owned = new OwnedConnections({ servers }, ports);
const { identity } = await directoryStore(stateDir, []);
const files = spaceFiles(await openFolder(stateDir), space);
const service = await startAuth(
  {
    space,
    settings: await files.settings(identity),
    servers,
    secrets: await directoryStore(stateDir, viewKeys(space, "auth")),
    files,
    ports,
    log: pino({ level: "info" }, process.stdout),
    owned,
    instance,
    hostUid: newUid(ports),
    standingTtlS: 900,
    development: false,
    signal: new AbortController().signal,
    version: "0.1.0",
  },
  { afterStep },
);
serves = true;
process.once("SIGTERM", async () => {
  await service.close();
  await runCloseSteps(owned.closeSteps(""));
  process.exit(0);
});
