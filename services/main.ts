/** `mesh-authority serve`: one process that hosts one or several services of one space (lifecycles §8.4). */
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import type { Logger } from "pino";
import { isAuthorityError, reasonOf } from "../shared/errors.ts";
import { EXIT, exitOfStart } from "../shared/exit.ts";
import { LIFE } from "../shared/limits.ts";
import { createLog, LOG_LEVELS, type LogLevel } from "../shared/log.ts";
import { newUid, systemPorts } from "../shared/ports.ts";
import { directoryStore } from "../shared/secrets/directory.ts";
import { openFolder } from "../shared/secrets/folder.ts";
import { loadSecret, PUBLIC_FILE, SECRET, viewKeys } from "../shared/secrets/keys.ts";
import { spaceFiles } from "../shared/secrets/settings.ts";
import { chooseSpace } from "../shared/secrets/spaces.ts";
import { secretKey } from "../shared/secrets/store.ts";
import { exitOfEnd } from "./exit.ts";
import type { AuthServiceInputs } from "./inputs.ts";
import { ready, serveMetrics } from "./metrics.ts";
import { type HostedService, SERVICES } from "./service.ts";
import { startServices } from "./start.ts";

interface Flags {
  readonly state: string;
  readonly space?: string;
  readonly services: readonly HostedService[];
  readonly instance: string;
  readonly servers?: readonly string[];
  readonly standingTtl: number;
  readonly metricsPort?: number;
  readonly logLevel: LogLevel;
  readonly dev: boolean;
}

/** Resolves with the exit code, when everything is closed. Takes over this process's signals. */
export async function serve(argv: readonly string[]): Promise<number> {
  let flags: Flags;
  try {
    flags = parse(argv);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.closed : EXIT.refused;
    throw error;
  }
  const log = createLog(flags.logLevel);
  const stop = watchSignals(log);
  try {
    const inputs = await inputsOf(flags);
    const metrics = flags.metricsPort === undefined ? undefined : await serveMetrics(flags.metricsPort);
    try {
      return await host(inputs, flags, log, stop);
    } finally {
      await metrics?.close();
    }
  } catch (error) {
    if (stop.signal.aborted && !stop.crashed()) return EXIT.closed; // asked to stop before it had started
    log.fatal({ code: codeOf(error), err: reasonOf(error) }, "the start failed");
    return exitOfStart(error);
  }
}

async function host(inputs: AuthServiceInputs, flags: Flags, log: Logger, stop: Stop): Promise<number> {
  const { dev: development, services, instance } = flags;
  const authority = await startServices(inputs, { ports: systemPorts, log, development, signal: stop.signal });
  ready.set({}, 1);
  process.stdout.write(`${JSON.stringify({ ready: true, pid: process.pid, services, instance })}\n`);
  const asked = await Promise.race([authority.closed.then(() => false), stop.asked.then(() => true)]);
  ready.set({}, 0);
  try {
    await authority.close();
  } catch (error) {
    const failures = error instanceof AggregateError ? error.errors.map(reasonOf) : [];
    log.fatal({ err: reasonOf(error), failures }, "close failed");
    return EXIT.failed;
  }
  const { reason } = await authority.closed;
  log.info({ reason }, "closed");
  return stop.crashed() ? EXIT.failed : exitOfEnd(asked ? "closed" : reason);
}

interface Stop {
  /** Aborts with the first signal, so that a start is given up. */
  readonly signal: AbortSignal;
  readonly asked: Promise<void>;
  /** Whether an uncaught error, and no signal, ends this process. */
  crashed(): boolean;
}

function watchSignals(log: Logger): Stop {
  const controller = new AbortController();
  let crashed = false;
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(EXIT.interrupted);
      log.info({ signal: name }, "closing");
      controller.abort();
    });
  }
  process.on("SIGHUP", () => {});
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      log.fatal({ err: error instanceof Error ? error.stack : String(error) }, event);
      crashed = true;
      controller.abort();
    });
  }
  const asked = new Promise<void>((resolve) => controller.signal.addEventListener("abort", () => resolve()));
  return { signal: controller.signal, asked, crashed: () => crashed };
}

async function inputsOf(flags: Flags): Promise<AuthServiceInputs> {
  const folder = await openFolder(flags.state);
  const space = await chooseSpace(folder, flags.space);
  const keys = [secretKey(space, PUBLIC_FILE), ...flags.services.flatMap((service) => viewKeys(space, service))];
  const store = await directoryStore(flags.state, keys);
  const settings = await spaceFiles(folder, space).settings(store.identity);
  const { accounts } = await loadSecret(store, space, SECRET.publicKeys);
  return {
    context: { accountPublicKey: accounts.space, lifecycleUid: newUid(systemPorts) },
    space,
    servers: flags.servers ? [...flags.servers] : settings.broker.advertised,
    store,
    storeIdentity: store.identity,
    stateDir: folder.path,
    instance: flags.instance,
    services: flags.services,
    standingRenewableTtlSeconds: flags.standingTtl,
  };
}

function parse(argv: readonly string[]): Flags {
  const command = new Command("mesh-authority serve")
    .description("Hosts services of one space in this process, until it is stopped.")
    .option("--state <dir>", "folder that init made", "state")
    .option("--space <name>", "which space, where the folder has several")
    .option("--services <list>", `some of ${SERVICES.join(", ")}; custodian alone`, serviceList, [
      "auth",
      "exchange",
      "callout",
    ])
    .option("--instance <slot>", "slot of auth; each replica on one state has its own", "1")
    .option("--servers <urls>", "brokers, with commas between; default: the one the settings advertise", commaList)
    .option("--standing-ttl <s>", "life of standing credentials", wholeNumber, LIFE.standingTtlS)
    .option("--metrics-port <n>", "serve /metrics on this loopback port", wholeNumber)
    .addOption(new Option("--log-level <level>", "JSON lines on stderr").choices(LOG_LEVELS).default("info"))
    .option("--dev", "tolerate a development identity provider", false)
    .addHelpText(
      "after",
      "\nExit codes: 0 closed, 1 failed, 2 refused, 3 superseded, 4 no broker or store.\n\nExamples:\n" +
        "  mesh-authority serve --services custodian\n  mesh-authority serve --services auth --instance 2",
    )
    .allowExcessArguments(false)
    .exitOverride();
  return command.parse(argv, { from: "user" }).opts<Flags>();
}

const commaList = (text: string): string[] => text.split(",").map((item) => item.trim());

function serviceList(text: string): HostedService[] {
  return commaList(text).map((name) => {
    const known = SERVICES.find((service) => service === name);
    if (known === undefined) throw new InvalidArgumentError(`choose from ${SERVICES.join(", ")}.`);
    return known;
  });
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("a whole number is needed.");
  return Number(text);
}

const codeOf = (error: unknown): string => (isAuthorityError(error) ? error.code : "internal");

if (process.argv[1] === import.meta.filename) process.exit(await serve(process.argv.slice(2)));
