#!/usr/bin/env node
/** `mesh-authority`: the operator's command line. What hosts something is run by its own module, the rest by `main.ts`. */
import { register } from "tsx/esm/api";

register();
const [command, ...rest] = process.argv.slice(2);
const hosts = {
  serve: async () => (await import("../main.ts")).serve(rest),
  gateway: async () => (await import("../../gateway/main.ts")).gateway(rest),
  up: async () => (await import("../launch/main.ts")).up(rest),
};
const run = hosts[command] ?? (async () => (await import("./main.ts")).run(process.argv.slice(2)));
process.exit(await run());
