#!/usr/bin/env node
/** `mesh-authority`: the operator's command line. What hosts something is run by its own module, the rest by `main.ts`. */
import { register } from "tsx/esm/api";

register();
const argv = process.argv.slice(2);
// `help serve` is `serve --help`: only the module that runs it knows its flags.
const [command, ...rest] = argv[0] === "help" && argv.length === 2 ? [argv[1], "--help"] : argv;
const hosts = {
  serve: async () => (await import("../main.ts")).serve(rest),
  gateway: async () => (await import("../../gateway/main.ts")).gateway(rest),
  up: async () => (await import("../launch/main.ts")).up(rest),
};
const run = hosts[command] ?? (async () => (await import("./main.ts")).run(argv));
process.exit(await run());
