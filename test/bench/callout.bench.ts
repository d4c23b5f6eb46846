/**
 * Connects per second of three callouts on one broker, in one run, and where the CPU goes: one written with the ordinary
 * JWT library, that answers everybody with a small JWT; ours without rows, with every check and permission but its rows
 * in memory; ours in full. Trust the ratios: the machine is shared by clients, broker and callout.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { newUid, systemPorts } from "../../shared/ports.ts";
import { freshNonce, grant, install } from "../services/callout/people.ts";
import { startSpace, type TestSpace } from "../services/callout/space.ts";
import { costs } from "./callout-costs.ts";
import { rawConnect } from "./raw-connect.ts";
import { verdict } from "./verdict.ts";

const ports = systemPorts;

interface Load {
  readonly variant: "library" | "rowless" | "full";
  readonly connects: number;
  readonly atOnce: number;
}

interface Result extends Load {
  readonly perSecond: number;
  readonly lost: number;
  /** Milliseconds of CPU per connect. */
  readonly callout: number;
  readonly broker: number;
}

/** The library's callout has its best rate at 4 at a time, and loses clients at 20. */
const LOADS: readonly Load[] = [
  { variant: "library", connects: 60, atOnce: 4 },
  { variant: "rowless", connects: 1_200, atOnce: 32 },
  { variant: "full", connects: 1_200, atOnce: 32 },
];
/** In turn: what else runs on the machine slows each down at another time. */
const ROUNDS = 5;

async function run(at: TestSpace, tokens: readonly string[], load: Load): Promise<Result> {
  const child = await startVariant(at, load.variant);
  await connectAll(at, tokens, 10, load.atOnce); // keys, code and rows are warm
  const [calloutBefore, brokerBefore] = [await cpuOf(child), await brokerCpu(at.broker.pid)];
  const began = performance.now();
  const lost = await connectAll(at, tokens, load.connects, load.atOnce);
  const seconds = (performance.now() - began) / 1_000;
  const [calloutAfter, brokerAfter] = [await cpuOf(child), await brokerCpu(at.broker.pid)];
  child.disconnect();
  await once(child, "exit");
  return {
    ...load,
    lost,
    perSecond: (load.connects - lost) / seconds,
    callout: (calloutAfter - calloutBefore) / load.connects,
    broker: (brokerAfter - brokerBefore) / load.connects,
  };
}

async function connectAll(at: TestSpace, tokens: readonly string[], count: number, atOnce: number): Promise<number> {
  let next = 0;
  let lost = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const token = tokens[next % tokens.length] ?? "";
      next += 1;
      if (!(await rawConnect(at.broker.port, at.sentinel, token, freshNonce()))) lost += 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return lost;
}

async function startVariant(at: TestSpace, variant: string): Promise<ChildProcess> {
  const script = fileURLToPath(new URL("callout-variant.ts", import.meta.url));
  const child = fork(script, [variant, at.stateDir, at.broker.url], { execArgv: ["--import", "tsx"] });
  await once(child, "message");
  return child;
}

/** Milliseconds. */
async function cpuOf(child: ChildProcess): Promise<number> {
  child.send("cpu");
  const [{ user, system }] = (await once(child, "message")) as [NodeJS.CpuUsage];
  return (user + system) / 1_000;
}

/** Milliseconds; 0 where the system does not tell. Ticks of 10 ms. */
async function brokerCpu(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 10;
}

/** The best rate of a load, the lowest CPU, every client lost. */
function bestOf(rounds: readonly Result[], load: Load): Result {
  const own = rounds.filter(({ variant }) => variant === load.variant);
  return {
    ...load,
    perSecond: Math.max(...own.map(({ perSecond }) => perSecond)),
    lost: own.reduce((sum, { lost }) => sum + lost, 0),
    callout: Math.min(...own.map(({ callout }) => callout)),
    broker: Math.min(...own.map(({ broker }) => broker)),
  };
}

/** Of each round's two rates, which stand beside each other in time: the ratio in the middle, the least, the most. */
function ratioOf(rounds: readonly Result[], one: Load, other: Load): { ratio: number; least: number; most: number } {
  const rates = (load: Load) => rounds.filter(({ variant }) => variant === load.variant);
  const baseline = rates(other);
  const ratios = rates(one)
    .map(({ perSecond }, round) => perSecond / (baseline[round]?.perSecond ?? Number.NaN))
    .sort((less, more) => less - more);
  const at = (index: number): number => ratios[index] ?? Number.NaN;
  return { ratio: at(Math.floor(ratios.length / 2)), least: at(0), most: at(ratios.length - 1) };
}

const at = await startSpace();
try {
  const people = await Promise.all(
    Array.from({ length: 50 }, () => install(at, grant({ actor: `cli_${newUid(ports)}` }))),
  );
  const tokens = await Promise.all(people.map((who) => at.bearers.bearer(who)));
  const rounds: Result[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const load of LOADS) rounds.push(await run(at, tokens, load));
  }
  const results = LOADS.map((load) => bestOf(rounds, load));
  console.table(
    results.map(({ variant, atOnce, perSecond, lost, callout, broker }) => ({
      callout: variant,
      "at once": atOnce,
      "connects/s": Math.round(perSecond),
      lost,
      "callout CPU ms each": Number(callout.toFixed(2)),
      "broker CPU ms each": Number(broker.toFixed(2)),
    })),
  );
  const [library, rowless, full] = results;
  if (!library || !rowless || !full) throw new Error("a load did not run");
  const alone = await costs();
  console.table([...alone.each].map(([what, us]) => ({ alone: what, µs: Math.round(us) })));
  console.log(
    `CPU of one connect in the full callout: ${full.callout.toFixed(2)} ms, of which ${(alone.connectUs / 1_000).toFixed(2)} ms ` +
      "are its two signatures, two verifications and two boxes",
  );
  const compare = (one: Load, other: Load, what: string, baseline: string, atLeast: number): void => {
    const { ratio, least, most } = ratioOf(rounds, one, other);
    verdict({ what, ratio, baseline, target: { atLeast } });
    console.log(`${what} to ${baseline}: ${least.toFixed(2)} to ${most.toFixed(2)} in ${ROUNDS} rounds`);
  };
  compare(rowless, library, "connects/s without rows", "a callout on the JWT library, without rows", 20);
  compare(full, rowless, "connects/s of the full callout", "the same without rows", 0.5);
  const cpu = ({ callout, broker }: Result): number => callout + broker;
  console.log(
    `CPU of the full callout and its broker: ${(cpu(full) / cpu(rowless)).toFixed(2)} times that without rows`,
  );
} finally {
  await at.stop();
}
