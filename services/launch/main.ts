/** `npm start` and `mesh-authority up`: a whole space on this machine, under one supervisor. */
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { CommanderError } from "commander";
import { reasonOf } from "../../shared/errors.ts";
import { LAUNCH } from "../../shared/limits.ts";
import { systemPorts } from "../../shared/ports.ts";
import { startGuard } from "./guard.ts";
import { hintsFor } from "./hints.ts";
import { lockState } from "./lock.ts";
import { findNatsServer } from "./nats-server.ts";
import { type LaunchOptions, parseStart, parseUp } from "./options.ts";
import { mixedStores, type Plan, portsOf, processesOf } from "./processes.ts";
import { type Report, report } from "./report.ts";
import { developmentSpace, existingSpace, type LaunchedSpace } from "./space.ts";
import { ProcessFailed, Supervisor } from "./supervisor.ts";
import { portsInUse } from "./tcp-ports.ts";
import { runTour } from "./tour.ts";

const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

/** `npm start`. Resolves with the exit code once everything has stopped. */
export function launch(argv: readonly string[]): Promise<number> {
  return run(() => parseStart(argv), developmentSpace, tour);
}

/** `mesh-authority up`: the same without a tour, of a space that is there. */
export function up(argv: readonly string[]): Promise<number> {
  return run(
    () => parseUp(argv),
    existingSpace,
    async () => true,
  );
}

type SpaceOf = (options: LaunchOptions & { ports: typeof systemPorts }) => Promise<LaunchedSpace>;
/** What is done once all is ready; false if it failed. */
type Then = (plan: Plan, say: Report) => Promise<boolean>;

async function run(parse: () => LaunchOptions, spaceOf: SpaceOf, then: Then): Promise<number> {
  let options: LaunchOptions;
  try {
    options = parse();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    throw error;
  }
  const put = (stream: NodeJS.WriteStream) => (line: string) => void stream.write(`${line}\n`);
  const say = report(options.json, put(process.stdout), put(process.stderr));
  const stop = new Interrupt();
  try {
    await mkdir(options.stateDir, { recursive: true, mode: 0o700 });
    const lock = await lockState(options.stateDir);
    try {
      return await launchLocked(options, spaceOf, then, say, stop);
    } finally {
      await lock.release();
    }
  } catch (error) {
    say.problem(`cannot start: ${reasonOf(error)}`);
    return EXIT.failed;
  }
}

async function launchLocked(
  options: LaunchOptions,
  spaceOf: SpaceOf,
  then: Then,
  say: Report,
  stop: Interrupt,
): Promise<number> {
  const broker = await findNatsServer({ log: (line) => say.note(line) });
  const space = await spaceOf({ ...options, ports: systemPorts });
  say.note(`space ${space.space}, ${space.created ? "made" : "kept"} in ${options.stateDir}`);
  const logs = join(options.stateDir, "log");
  const plan: Plan = { ...space, ...options, natsServer: broker.path, space: space.space, logs };
  const mixed = mixedStores(plan);
  const conflicts = [...(mixed === undefined ? [] : [mixed]), ...(await portsInUse(portsOf(plan)))];
  for (const line of conflicts) say.problem(line);
  if (!/^(127\.|::1$)/.test(options.brokerHost ?? "127.0.0.1") && !space.settings.broker.tlsRequired) {
    say.note(`the broker takes clients without TLS on ${options.brokerHost}: bearers cross that network in the clear`);
  }
  if (conflicts.length > 0) return EXIT.failed;
  await rm(logs, { recursive: true, force: true });
  await mkdir(logs, { mode: 0o700 });

  const guard = startGuard();
  const supervisor = new Supervisor({
    specs: await processesOf(plan),
    guard,
    ports: systemPorts,
    report: (happening) => say.process(happening),
  });
  stop.onSecond(() => supervisor.killAll());
  try {
    return await Promise.race([
      bringUp(supervisor, plan, options, then, say, stop),
      supervisor.failed.then((failure) => failed(failure, plan, say)),
      stop.asked.then(() => (options.once ? EXIT.failed : EXIT.ok)),
    ]);
  } finally {
    await supervisor.stop();
    await guard.end();
  }
}

async function bringUp(
  supervisor: Supervisor,
  plan: Plan,
  { once }: LaunchOptions,
  then: Then,
  say: Report,
  stop: Interrupt,
): Promise<number> {
  try {
    await supervisor.start();
  } catch (error) {
    if (stop.was) return EXIT.ok;
    if (error instanceof ProcessFailed) return failed(error, plan, say);
    throw error;
  }
  const good = await then(plan, say);
  if (once) return good ? EXIT.ok : EXIT.failed;
  say.next(hintsFor(plan));
  return new Promise(() => {}); // until somebody stops it
}

async function tour(plan: Plan, say: Report): Promise<boolean> {
  const { space, stateDir, settings, idpPort } = plan;
  const summary = await runTour(
    {
      space,
      stateDir,
      servers: settings.broker.advertised,
      loopbackUrl: `http://127.0.0.1:${settings.gateway.loopbackPort}`,
      publicUrl: settings.gateway.publicUrl ?? "",
      idpUrl: `http://127.0.0.1:${idpPort}`,
      ports: systemPorts,
    },
    say,
  );
  say.tour(summary);
  return summary.failed === 0;
}

function failed(failure: ProcessFailed, plan: Plan, say: Report): number {
  say.problem(`everything was stopped, since ${failure.message}`);
  if (failure.log !== "") say.problem(failure.log);
  say.problem(`its whole log: ${join(plan.logs, `${failure.process}.log`)}`);
  return EXIT.failed;
}

/** Ctrl-C, SIGTERM and a closed terminal ask to stop; a second one does not wait. One Ctrl-C comes twice: npm hands it on, too. */
class Interrupt {
  readonly asked: Promise<void>;
  was = false;
  #second: () => void = () => {};

  constructor() {
    this.asked = new Promise((resolve) => {
      let first = 0;
      const ask = (): void => {
        const now = systemPorts.monotonic();
        if (!this.was) {
          this.was = true;
          first = now;
          resolve();
        } else if (now - first > LAUNCH.oneSignalMs) {
          this.#second();
          process.exit(EXIT.interrupted);
        }
      };
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, ask);
    });
  }

  onSecond(act: () => void): void {
    this.#second = act;
  }
}
