/** `gateway`: the HTTP faces of one space in a process of their own, which holds no key but its users' (identity §11). */
import { Command, CommanderError, Option } from "commander";
import type { Logger } from "pino";
import { reasonOf, textOf } from "../shared/errors.ts";
import { EXIT, exitOfStart } from "../shared/exit.ts";
import { HOST } from "../shared/limits.ts";
import { createLog, LOG_LEVELS, type LogLevel } from "../shared/log.ts";
import { OwnedConnections, runCloseSteps } from "../shared/nats/owned.ts";
import { patiently } from "../shared/patience.ts";
import { systemPorts } from "../shared/ports.ts";
import { directoryStore } from "../shared/secrets/directory.ts";
import { type Folder, openFolder } from "../shared/secrets/folder.ts";
import { viewKeys } from "../shared/secrets/keys.ts";
import { announceLoopback, type SpaceSettings, spaceFiles, withdrawLoopback } from "../shared/secrets/settings.ts";
import { chooseSpace } from "../shared/secrets/spaces.ts";
import type { Space } from "../shared/tokens.ts";
import { type GatewayDeps, type OpenFace, openFaces } from "./start.ts";

interface Flags {
  readonly state: string;
  readonly space?: string;
  readonly servers?: string;
  readonly logLevel: LogLevel;
}

/** Resolves with the exit code, when everything is closed. Takes over this process's signals. */
export async function gateway(argv: readonly string[]): Promise<number> {
  let flags: Flags;
  try {
    flags = parse(argv);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.closed : EXIT.refused;
    throw error;
  }
  const log = createLog(flags.logLevel);
  const stop = stopSignal(log);
  try {
    const { folder, space, settings } = await placeOf(flags);
    return await run(folder, space, settings, flags, log, stop);
  } catch (error) {
    if (stop.aborted && stop.reason !== CRASH) return EXIT.closed; // asked to stop before it had started
    log.fatal({ err: reasonOf(error) }, "the start failed");
    return exitOfStart(error);
  }
}

async function run(
  folder: Folder,
  space: Space,
  settings: SpaceSettings,
  flags: Flags,
  log: Logger,
  stop: AbortSignal,
): Promise<number> {
  const ports = systemPorts;
  const { advertised, tlsRequired } = settings.broker;
  const owned = new OwnedConnections({ servers: flags.servers?.split(",") ?? advertised, tlsRequired }, ports);
  const { loopbackPort, publicPort, publicUrl, trustedProxy = false } = settings.gateway;
  const keys = viewKeys(space, "gateway_loopback");
  if (publicPort !== undefined) keys.push(...viewKeys(space, "gateway_public"));
  const deps: GatewayDeps = {
    space,
    port: loopbackPort,
    ...(publicPort === undefined
      ? {}
      : { publicFace: { port: publicPort, url: publicUrl ?? `http://127.0.0.1:${publicPort}`, trustedProxy } }),
    secrets: await directoryStore(folder.path, keys),
    owned,
    ports,
    log,
  };

  await withdrawLoopback(folder, space);
  const signal = AbortSignal.any([stop, AbortSignal.timeout(HOST.storeWaitMs)]);
  const faces = await patiently({ ports, signal, log }, () => openFaces(deps));
  let failed = false;
  try {
    await announce(folder, space, faces);
    process.stdout.write(`${JSON.stringify({ ready: true, pid: process.pid, url: faces[0]?.url })}\n`);
    if (!stop.aborted) await new Promise((resolve) => stop.addEventListener("abort", resolve, { once: true }));
    failed = stop.reason === CRASH;
  } finally {
    // Both faces stop taking requests together; the list then waits for each.
    for (const face of faces) void face.close().catch(() => {});
    await runCloseSteps([
      ...faces.map(({ name, close }) => ({ label: `face:${name}`, run: close })),
      { label: "auth-service.json", run: () => withdrawLoopback(folder, space) },
      ...owned.closeSteps("gateway:"),
    ]).catch((error: unknown) => {
      log.fatal({ err: textOf(error) }, "close failed");
      failed = true;
    });
  }
  return failed ? EXIT.failed : EXIT.closed;
}

/** How local clients find the loopback face, once everything is bound. */
async function announce(folder: Folder, space: Space, faces: readonly OpenFace[]): Promise<void> {
  const [loopback, publicFace] = faces;
  if (loopback?.cap === undefined) throw new TypeError("the loopback face has no capability");
  await announceLoopback(folder, space, {
    ver: 1,
    url: loopback.url,
    pid: process.pid,
    cap: loopback.cap,
    ...(publicFace ? { publicUrl: publicFace.url } : {}),
  });
}

async function placeOf(flags: Flags): Promise<{ folder: Folder; space: Space; settings: SpaceSettings }> {
  const folder = await openFolder(flags.state);
  const space = await chooseSpace(folder, flags.space);
  const { identity } = await directoryStore(folder.path, []);
  return { folder, space, settings: await spaceFiles(folder, space).settings(identity) };
}

const CRASH = new Error("an error that nobody caught");

/** Aborts with the first signal or uncaught error; a second signal exits at once. */
function stopSignal(log: Logger): AbortSignal {
  const controller = new AbortController();
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
      controller.abort(CRASH);
    });
  }
  return controller.signal;
}

function parse(argv: readonly string[]): Flags {
  return new Command("mesh-authority gateway")
    .description("Translates HTTP to the authority's operations, until it is stopped.")
    .option("--state <dir>", "folder that init made", "state")
    .option("--space <name>", "which space, where the folder has several")
    .option("--servers <urls>", "brokers, with commas between; default: the one the settings advertise")
    .addOption(new Option("--log-level <level>", "JSON lines on stderr").choices(LOG_LEVELS).default("info"))
    .addHelpText(
      "after",
      "\nExit codes: 0 closed, 1 failed, 2 refused, 4 no broker.\n\nExample:\n  mesh-authority gateway --space acme",
    )
    .allowExcessArguments(false)
    .exitOverride()
    .parse(argv, { from: "user" })
    .opts<Flags>();
}

if (process.argv[1] === import.meta.filename) process.exit(await gateway(process.argv.slice(2)));
