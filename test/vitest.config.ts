import { defineConfig } from "vitest/config";

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    // Files share their worker's modules: no test changes one, and loading them anew costs more than most files run.
    isolate: false,
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Real brokers and clusters on a shared machine: a wait that ran out there is tried once more.
    retry: process.env.CI === undefined ? 0 : 2,
    reporters: ["default"],
  },
});
