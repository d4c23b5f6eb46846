/**
 * What the rounds run on, and how many there are. Each round has a space of its own, with a custodian in the test's
 * process; `auth` runs in others.
 *
 * CHAOS_SERVERS  how many nats-servers: `1`, `3`, or both as `1,3`
 * CHAOS_ROUNDS   how often everything is gone through
 * CHAOS_STRAYS   kills at a random moment in each round
 * CHAOS_SEED     what the first round draws from, each further one the next number; at random unless given
 */
import { randomInt } from "node:crypto";
import { startSpace, type TestSpace } from "../kit/space.ts";

const { CHAOS_SERVERS = "1", CHAOS_ROUNDS = "1", CHAOS_STRAYS = "1", CHAOS_SEED = randomInt(1_000_000) } = process.env;

export const STRAYS = Number(CHAOS_STRAYS);

export interface Round {
  readonly servers: number;
  readonly round: number;
  /** `CHAOS_SEED=<seed> CHAOS_ROUNDS=1 CHAOS_SERVERS=<servers>` goes through this round again. */
  readonly seed: number;
}

export const ROUNDS: readonly Round[] = CHAOS_SERVERS.split(",").flatMap((servers) =>
  Array.from({ length: Number(CHAOS_ROUNDS) }, (_, at) => ({
    servers: Number(servers),
    round: at + 1,
    seed: Number(CHAOS_SEED) + at,
  })),
);

/** ms that everything between two deaths may take on a busy machine. */
export const PATIENCE = { timeout: 30_000, interval: 25 };

export const startChaos = ({ servers }: Pick<Round, "servers">): Promise<TestSpace> =>
  startSpace({ services: ["custodian"], authTimeoutS: 1, cluster: servers > 1 });
