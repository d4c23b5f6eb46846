/** Flags of `npm start` and of `mesh-authority up`. */
import { isIP } from "node:net";
import { resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { port } from "../cli/values.ts";

export interface LaunchOptions {
  readonly stateDir: string;
  readonly space?: string;
  /** End after the tour. */
  readonly once: boolean;
  readonly json: boolean;
  readonly brokerPort?: number;
  /** IP address on which the broker takes clients; absent: 127.0.0.1. */
  readonly brokerHost?: string;
  readonly gatewayPort?: number;
  /** Processes of `auth`. */
  readonly replicas: number;
  /** Three brokers as a cluster. */
  readonly cluster: boolean;
}

const MAX_REPLICAS = 9;
const CLUSTER_REPLICAS = 3;

type Given = Omit<LaunchOptions, "replicas"> & { replicas?: number };

/** Throws commander's own error, which carries an exit code, for a wrong flag and after `--help`. */
export function parseStart(argv: readonly string[]): LaunchOptions {
  const command = common(new Command("npm start --"))
    .description("Starts a whole development space on this machine, shows its main job working, and stays up.")
    .option("--once", "end after the tour: exit code 0, or 1 if a step failed", false)
    .option("--broker-port <n>", "broker on this port of 127.0.0.1 (default: as last time, or 4222)", port)
    .option("--gateway-port <n>", "gateway on this port and the next (default: as last time, or 4280)", port)
    .addHelpText("after", "\nExample: npm start -- --once --state /tmp/try --broker-port 5222 --gateway-port 5280");
  return parsed(command, argv);
}

export function parseUp(argv: readonly string[]): LaunchOptions {
  const command = common(new Command("mesh-authority up"))
    .description("Runs a space that init made: broker, services and gateway under one supervisor, until it is stopped.")
    .option("--space <name>", "which space, where the folder has several")
    .option(
      "--broker-host <ip>",
      "where the broker takes clients; 0.0.0.0 for every address (default: 127.0.0.1)",
      address,
    )
    .addHelpText(
      "after",
      "\nExamples:\n  mesh-authority up\n  mesh-authority up --space acme --broker-host 0.0.0.0 --replicas 3",
    );
  return { ...parsed(command, argv), once: false };
}

const common = (command: Command): Command =>
  command
    .option("--state <dir>", "where keys, settings and the broker's data are kept", "state")
    .option("--json", "one JSON object a line on stdout", false)
    .option("--replicas <n>", `processes of auth, 1 to ${MAX_REPLICAS}; two of exchange and callout then`, replicas)
    .option("--cluster", "three brokers as a cluster, on six ports from the broker's on, and three replicas", false)
    .allowExcessArguments(false)
    .exitOverride();

function parsed(command: Command, argv: readonly string[]): LaunchOptions {
  const { state, ...options } = command.parse(argv, { from: "user" }).opts<Given & { state: string }>();
  return {
    ...options,
    replicas: options.replicas ?? (options.cluster ? CLUSTER_REPLICAS : 1),
    stateDir: resolve(state),
  };
}

function address(text: string): string {
  if (isIP(text) === 0) throw new InvalidArgumentError("an IP address such as 0.0.0.0.");
  return text;
}

function replicas(text: string): number {
  const value = /^\d$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > MAX_REPLICAS) throw new InvalidArgumentError(`1 to ${MAX_REPLICAS} replicas.`);
  return value;
}
