/**
 * The entry of a replica of `auth` that a test may end in the middle of a barrier: the real service in a process of its
 * own, which kills itself after a step or within a commit, or stops before one until it is told to go on. It waits for
 * its task, a message, with everything loaded; its log goes to stdout.
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
}

export interface Ends {
  /** Barriers that end nowhere else than after their step; once all of them stand there, the process is killed. */
  readonly dies?: readonly Death[];
  /** Killed so many ms after it sent its n-th commit from now, answered or not. */
  readonly diesInCommit?: { readonly nth: number; readonly afterMs: number };
  /** Stops, as by SIGSTOP from outside, before it sends the first commit that writes a key with this prefix. */
  readonly pausesBefore?: string;
}

export interface Task extends Ends {
  readonly stateDir: string;
  readonly space: Space;
  readonly servers: string | string[];
  /** Slot of `auth`. */
  readonly instance: string;
  /** ms between rescans, so that a replica that stands by takes over soon. */
  readonly rescanMs: number;
}

const kill = () => process.kill(process.pid, "SIGKILL");
const forever = new Promise<never>(() => {});

let ends: Ends = {};
let awaited: Death[] = [];
const standing = new Set<string>();
let commits = 0;

/** Tells that from here on it ends so. */
function arm(next: Ends): void {
  ends = next;
  awaited = [...(next.dies ?? [])];
  commits = 0;
  process.send?.("armed");
}

const afterStep: AfterStep = async ({ kind, step, opId }) => {
  const fits = (death: Death) => death.kind === kind && death.step === step && (death.opId ?? opId) === opId;
  const here = standing.has(opId) ? -1 : awaited.findIndex(fits);
  if (here < 0) return;
  awaited.splice(here, 1);
  standing.add(opId);
  if (awaited.length === 0) kill();
  await forever;
};

const { commit } = Store.prototype;
Store.prototype.commit = function (messages, work) {
  const { diesInCommit, pausesBefore } = ends;
  if (pausesBefore !== undefined && messages.some(({ key }) => key.startsWith(pausesBefore))) {
    ends = {};
    process.kill(process.pid, "SIGSTOP");
  }
  commits += 1;
  if (diesInCommit?.nth === commits) setTimeout(kill, diesInCommit.afterMs);
  return commit.call(this, messages, work);
};

async function serve({ stateDir, space, servers, instance, rescanMs }: Task): Promise<void> {
  const ports: Ports = {
    ...systemPorts,
    sleep: (ms, signal) => systemPorts.sleep(ms === RESCAN_MS ? rescanMs : ms, signal),
  };
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
  process.once("SIGTERM", async () => {
    await service.close();
    await runCloseSteps(owned.closeSteps(""));
    process.exit(0);
  });
}

process.once("disconnect", () => process.exit(1));
process.once("message", (task) => {
  arm(task as Task);
  process.on("message", (next) => arm(next as Ends));
  void serve(task as Task);
});
