/** A space with a custodian in the test's process; `auth` runs in others. */
import { startSpace, type TestSpace } from "../kit/space.ts";

/** So many times each place is gone through; more with `npm run test:chaos`. */
export const ROUNDS = Number(process.env.CHAOS_ROUNDS ?? 1);

/** ms that everything between two deaths may take on a busy machine. */
export const PATIENCE = { timeout: 30_000, interval: 50 };

export const startChaos = (): Promise<TestSpace> => startSpace({ services: ["custodian"], authTimeoutS: 1 });
